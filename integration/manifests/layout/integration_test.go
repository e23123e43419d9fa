package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	product = "gridproxy/"             // except what is below tests
	tests   = "gridproxy/integration/" // all of integration
	env     = tests + "env/"           // what tests are built from
)

// needed returns the packages of env that tests of the product may use.
func needed() []string { return []string{env + "need", env + "wait"} }

// beyondEnv says, for packages below env, what else of this module they or their tests may import.
// There is nothing: env starts programs of the product, and builds them for that, but imports none.
var beyondEnv = map[string][]string{}

// TestImportsOfIntegration reads the imports of tests too. The product imports nothing of
// integration, its tests only need and wait, and env nothing of the product or of the groups of
// tests.
func TestImportsOfIntegration(t *testing.T) {
	for _, p := range listPackages(t) {
		ofTests := slices.Concat(p.TestImports, p.XTestImports)
		for _, imported := range p.Imports {
			if !strings.HasPrefix(p.ImportPath, tests) && strings.HasPrefix(imported, tests) {
				t.Errorf("%s is of the product, yet imports %s", p.ImportPath, imported)
			}
		}
		for _, imported := range ofTests {
			if !strings.HasPrefix(p.ImportPath, tests) && strings.HasPrefix(imported, tests) && !slices.Contains(needed(), imported) {
				t.Errorf("a test of %s imports %s; of integration it may import only %v", p.ImportPath, imported, needed())
			}
		}
		if !strings.HasPrefix(p.ImportPath, env) {
			continue
		}
		for _, imported := range slices.Concat(p.Imports, ofTests) {
			if strings.HasPrefix(imported, product) && !strings.HasPrefix(imported, env) && !slices.Contains(beyondEnv[p.ImportPath], imported) {
				t.Errorf("%s or a test of it imports %s; of this module env may import only env", p.ImportPath, imported)
			}
		}
	}
}

// How integration is divided: folders, without testdata, and levels, integration itself being the
// first.
const (
	maxFolders = 39
	maxDepth   = 3
)

// TestFoldersOfIntegration: a reader finds the group of a test by its name, so there are few of
// them and no deep ones.
func TestFoldersOfIntegration(t *testing.T) {
	folders := foldersOf(t, "integration")
	if len(folders) > maxFolders {
		t.Errorf("integration has %d folders, want at most %d: %s", len(folders), maxFolders, strings.Join(folders, " "))
	}
	for _, folder := range folders {
		if depth := strings.Count(folder, "/") + 1; depth > maxDepth {
			t.Errorf("%s is at depth %d, want at most %d", folder, depth, maxDepth)
		}
	}
}

// maxReadme is how many lines a README of a group has.
const maxReadme = 20

// goTest is a command of a page, with the folder of a nested module if it has one. TestPages checks
// what it names.
var goTest = regexp.MustCompile(`go(?: -C \S+)? test [^` + "`" + `\n]*`)

// TestReadmesOfIntegration: each group says what it proves or offers, what it starts, and how to
// run one test of it.
func TestReadmesOfIntegration(t *testing.T) {
	for _, folder := range foldersOf(t, "integration") {
		if strings.Count(folder, "/") != 1 {
			continue
		}
		name := folder + "/README.md"
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%s: %v", folder, err)
			continue
		}
		if lines := strings.Count(string(text), "\n"); lines > maxReadme {
			t.Errorf("%s has %d lines, want at most %d", name, lines, maxReadme)
		}
		if !regexp.MustCompile(`(?m)^Starts: \S`).Match(text) {
			t.Errorf("%s has no line that begins with %q and says what the tests start", name, "Starts: ")
		}
		if !goTest.Match(text) && hasTests(t, folder) {
			t.Errorf("%s has no command `go test ./… -run Test…` for one test", name)
		}
	}
}

func hasTests(t *testing.T, group string) bool {
	t.Helper()
	return slices.ContainsFunc(foldersOf(t, group), func(folder string) bool { return len(testsIn(t, folder)) > 0 })
}

// testsIn are the names of the tests in a folder; none if there is no such folder.
func testsIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := fs.Glob(os.DirFS(root), folder+"/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		for _, found := range testName.FindAllStringSubmatch(read(t, file), -1) {
			names = append(names, found[1])
		}
	}
	return names
}

// foldersOf are the folders below one, it included, without testdata, by their paths from the root.
func foldersOf(t *testing.T, top string) []string {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(filepath.Join(root, top), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		if entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		relative, err := filepath.Rel(root, name)
		folders = append(folders, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}
