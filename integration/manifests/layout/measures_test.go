package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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

var fileNames = regexp.MustCompile(`[\w*]+\.go\b`)

// TestMaps: in a large room doc.go names each file, alone or by a pattern, and each name there is
// that of a file.
func TestMaps(t *testing.T) {
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
				t.Errorf("%s/doc.go does not name %s", folder, file)
			}
		}
		for _, p := range patterns {
			if !slices.ContainsFunc(files, func(file string) bool { return matches(p, file) }) {
				t.Errorf("%s/doc.go names %s, and there is no such file", folder, p)
			}
		}
	}
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
			content := parsed(t, path.Join(folder, file))
			for _, d := range content.Decls {
				f, isFunction := d.(*ast.FuncDecl)
				if !isFunction || ast.IsGenerated(content) {
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
	for _, name := range goFiles(t, named...) {
		if folder, file := path.Dir(name), path.Base(name); file != "doc.go" && !strings.HasSuffix(file, "_test.go") {
			files[folder] = append(files[folder], file)
		}
	}
	return files
}

// goFiles returns the Go files below some folders, without testdata, by their paths from the
// root.
func goFiles(t *testing.T, tops ...string) []string {
	t.Helper()
	var all []string
	for _, top := range tops {
		for _, folder := range foldersOf(t, top) {
			found, err := fs.Glob(os.DirFS(root), folder+"/*.go")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
	}
	return all
}

func parsed(t *testing.T, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
