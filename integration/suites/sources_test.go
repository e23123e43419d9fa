package suites

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the root of the repository, seen from this folder.
const root = "../.."

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readSources returns the texts of all Go files of the repository by path, without testdata.
func readSources(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(file, ".go"):
			return nil
		}
		text, err := os.ReadFile(file)
		texts[file] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

func parseTests(t *testing.T) (*token.FileSet, map[string][]*ast.File) {
	t.Helper()
	set, folders := token.NewFileSet(), map[string][]*ast.File{}
	for path, text := range readSources(t) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		folders[filepath.Dir(path)] = append(folders[filepath.Dir(path)], file)
	}
	return set, folders
}
