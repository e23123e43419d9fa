package suites

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// walkGo visits all Go files of the repository but those of testdata.
func walkGo(visit func(file string) error) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		return visit(file)
	})
}

// parseTests parses the test files of the repository, by folder.
func parseTests(t *testing.T) (*token.FileSet, map[string][]*ast.File) {
	t.Helper()
	set, folders := token.NewFileSet(), map[string][]*ast.File{}
	if err := walkGo(func(file string) error {
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		folders[filepath.Dir(file)] = append(folders[filepath.Dir(file)], parsed)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return set, folders
}

// variables returns the names of the environment variables that tests and their programs read, by
// how our names begin.
func variables(t *testing.T) []string {
	t.Helper()
	pattern := regexp.MustCompile(`"((?:GRIDPROXY|CI)_[A-Z_]*[A-Z]|REQUIRE|FUZZTIME|BURDEN)"`)
	var found []string
	err := walkGo(func(file string) error {
		text, err := os.ReadFile(file)
		for _, match := range pattern.FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found)
}
