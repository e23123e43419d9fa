package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// largeRoom is how many files a folder has, beside doc.go and tests, whose doc.go is a map of them.
const largeRoom = 8

// fileNames are the names of files, or patterns of such, in a text.
var fileNames = regexp.MustCompile(`[\w*]+\.go\b`)

// TestMaps: in a large room doc.go names each file, alone or by a pattern, and each name there is
// that of a file.
func TestMaps(t *testing.T) {
	missing := map[string]int{}
	for folder, files := range productFiles(t) {
		if len(files) < largeRoom {
			continue
		}
		doc, err := os.ReadFile(filepath.Join(root, folder, "doc.go"))
		if err != nil {
			t.Error(err)
		}
		patterns := slices.DeleteFunc(fileNames.FindAllString(string(doc), -1), func(name string) bool { return name == "doc.go" })
		isNamed := func(file string) bool {
			return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, file) })
		}
		for _, file := range files {
			if !isNamed(file) {
				missing[folder]++
			}
		}
		for _, p := range patterns {
			if !slices.ContainsFunc(files, func(file string) bool { return matches(p, file) }) {
				t.Errorf("%s/doc.go names %s, and there is no such file", folder, p)
			}
		}
	}
	ratchet(t, missing)
}

func matches(pattern, file string) bool {
	ok, err := path.Match(pattern, file)
	return ok && err == nil
}

// inverted are the verbs after which a comment says what its function is, not what it does.
var inverted = []string{"is", "are", "has", "have", "says", "was", "means"}

// TestFunctionComments: the comment of a function says what it does or returns.
func TestFunctionComments(t *testing.T) {
	for folder, files := range productFiles(t) {
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, folder, file), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				f, isFunction := d.(*ast.FuncDecl)
				if !isFunction || ast.IsGenerated(parsed) {
					continue
				}
				if words := strings.Fields(f.Doc.Text()); len(words) > 1 && slices.Contains(inverted, words[1]) {
					t.Errorf("%s/%s: %s %s …: write what the function does or returns", folder, file, words[0], words[1])
				}
			}
		}
	}
}

// productFiles returns the Go files of the product by folder, without doc.go and tests.
func productFiles(t *testing.T) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	for _, top := range named {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || d.Name() == "doc.go" {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(name))
			files[folder] = append(files[folder], d.Name())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// ratchet compares numbers by folder with those of testdata/maps. They may not grow, and where they
// are smaller now, the file says so. UPDATE=1 writes it.
func ratchet(t *testing.T, now map[string]int) {
	t.Helper()
	var text strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintln(&text, folder, now[folder])
	}
	const file = "testdata/maps"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	allowed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]int{}
	for line := range strings.Lines(string(allowed)) {
		var folder string
		var n int
		if _, err := fmt.Sscan(line, &folder, &n); err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		before[folder] = n
	}
	all := maps.Clone(before)
	maps.Copy(all, now)
	for folder := range all {
		if now[folder] != before[folder] {
			t.Errorf("%s: %d, and %s has %d: repair what is new, or run UPDATE=1 go test if there are fewer", folder, now[folder], file, before[folder])
		}
	}
}
