package suites

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository, seen from this folder.
const root = "../.."

// test is a test function of this repository.
type test struct {
	module string // folder of its module; "" = the main module
	folder string // of its package, relative to the module
	name   string
}

// TestEveryTestHasASuite: whoever adds a test adds it to a suite, or it never runs in CI.
func TestEveryTestHasASuite(t *testing.T) {
	all := testsOf(t)
	if len(all) < 500 {
		t.Fatalf("only %d tests were found in %s", len(all), root)
	}
	for _, x := range all {
		if !slices.ContainsFunc(All(), func(s Suite) bool { return s.Kernel == "" && s.runs(x) }) && !inParts(x) && !inGuests(x) {
			t.Errorf("no suite runs %s of %s: add it to a row in integration/suites", x.name, path.Join(x.module, x.folder))
		}
	}
}

// TestEverySuiteHasTests: the patterns of each row match something.
func TestEverySuiteHasTests(t *testing.T) {
	all := testsOf(t)
	for _, s := range All() {
		if len(s.Command) == 0 && !slices.ContainsFunc(all, func(x test) bool { return s.runs(x) || s.runsPart(x) }) {
			t.Errorf("no test matches the row of %s", s.Name)
		}
		for _, folder := range slices.Concat(s.Reads, s.Starts, s.About) {
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(folder, "/..."))); err != nil {
				t.Errorf("the row of %s: %v", s.Name, err)
			}
		}
	}
}

// inParts says whether the subtests of a test are divided between suites: what one runs another one
// skips.
func inParts(x test) bool {
	for _, s := range All() {
		for _, other := range All() {
			if s.Kernel == "" && other.Kernel == "" && s.Run != "" && s.runsPart(x) && s.Run == other.Skip && other.runsMost(x) {
				return true
			}
		}
	}
	return false
}

// inGuests says whether suites run a test, and its whole package, in virtual machines only, which
// is so for what this machine cannot do at all.
func inGuests(x test) bool {
	return slices.ContainsFunc(All(), func(s Suite) bool { return s.Kernel != "" && s.runs(x) }) &&
		slices.ContainsFunc(All(), func(s Suite) bool { return s.Kernel != "" && s.Run == "" && s.tests(x) })
}

// runs says whether the suite runs a test with all of its subtests.
func (s Suite) runs(x test) bool {
	return !strings.Contains(s.Skip, "/") && s.runsMost(x) && !matches(s.Skip, x.name, false)
}

// runsMost says whether the suite runs a test with all of its subtests but those that Skip names.
func (s Suite) runsMost(x test) bool {
	return s.Fuzz == "" && !strings.Contains(s.Run, "/") && s.tests(x) && matches(s.Run, x.name, true)
}

// runsPart says whether the suite runs a test with some of its subtests, or as a fuzz target.
func (s Suite) runsPart(x test) bool {
	if s.Fuzz != "" {
		return s.tests(x) && s.Fuzz == x.name
	}
	top, _, _ := strings.Cut(s.Run, "/")
	return s.tests(x) && matches(top, x.name, true)
}

// tests reports whether the suite tests the package of a test.
func (s Suite) tests(x test) bool {
	return s.Module == x.module && s.hasPackage(path.Join(x.module, x.folder))
}

// matches is how go test matches the first element of a pattern; preset is what an empty one says.
func matches(pattern, name string, preset bool) bool {
	if pattern == "" {
		return preset
	}
	return regexp.MustCompile(pattern).MatchString(name)
}

// testsOf reads all tests and fuzz targets from the sources.
func testsOf(t *testing.T) []test {
	t.Helper()
	var all []test
	_, folders := parseTests(t)
	for folder, files := range folders {
		module, inside := place(folder)
		for _, file := range files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if ok && f.Recv == nil && f.Name.Name != "TestMain" && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
					all = append(all, test{module, inside, f.Name.Name})
				}
			}
		}
	}
	return all
}

// place finds the module of a folder.
func place(folder string) (module, inside string) {
	for module = folder; module != root; module = filepath.Dir(module) {
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			break
		}
	}
	inside, _ = filepath.Rel(module, folder)
	module, _ = filepath.Rel(root, module)
	if module == "." {
		module = ""
	}
	return filepath.ToSlash(module), filepath.ToSlash(inside)
}
