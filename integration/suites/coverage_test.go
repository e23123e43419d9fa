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

type test struct {
	module string // folder of its module; "" = the main module
	folder string // of its package, relative to the module
	name   string
}

// TestEveryTestHasASuite: a test that no suite runs never runs in CI. A suite in a virtual machine
// counts only for packages that no suite tests on this machine.
func TestEveryTestHasASuite(t *testing.T) {
	all := testsOf(t)
	if len(all) < 500 {
		t.Fatalf("only %d tests were found in %s", len(all), root)
	}
	for _, x := range all {
		table := slices.DeleteFunc(All(), func(s Suite) bool { return !s.tests(x) })
		isHere := func(s Suite) bool { return s.Kernel == "" }
		if !slices.ContainsFunc(table, func(s Suite) bool { return s.runs(x) && (isHere(s) || !slices.ContainsFunc(table, isHere)) }) {
			t.Errorf("no suite runs %s of %s: add it to a row in integration/suites", x.name, path.Join(x.module, x.folder))
		}
	}
}

// TestEverySuiteHasTests: the patterns of each row match something, and another row runs the
// subtests that a row skips.
func TestEverySuiteHasTests(t *testing.T) {
	all := testsOf(t)
	for _, s := range All() {
		if len(s.Command) == 0 && !slices.ContainsFunc(all, func(x test) bool { return s.tests(x) && s.matches(x) }) {
			t.Errorf("no test matches the row of %s", s.Name)
		}
		if strings.Contains(s.Skip, "/") && !slices.ContainsFunc(All(), func(other Suite) bool {
			return other.Run == s.Skip && other.Kernel == s.Kernel && slices.Equal(other.Packages, s.Packages)
		}) {
			t.Errorf("%s skips the subtests %s: add a row that runs them", s.Name, s.Skip)
		}
		for _, folder := range slices.Concat(s.Reads, s.Starts, s.About) {
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(folder, "/..."))); err != nil {
				t.Errorf("the row of %s: %v", s.Name, err)
			}
		}
	}
}

// runs reports whether the suite runs a test of its packages with all subtests that Skip does not
// name.
func (s Suite) runs(x test) bool {
	isSkipped := s.Skip != "" && !strings.Contains(s.Skip, "/") && regexp.MustCompile(s.Skip).MatchString(x.name)
	return s.Fuzz == "" && !strings.Contains(s.Run, "/") && s.matches(x) && !isSkipped
}

// matches reports whether the suite runs at least some subtests of a test, or fuzzes it.
func (s Suite) matches(x test) bool {
	top, _, _ := strings.Cut(s.Run, "/")
	return s.Fuzz == x.name || s.Fuzz == "" && regexp.MustCompile(top).MatchString(x.name)
}

// tests reports whether the suite tests the package of a test.
func (s Suite) tests(x test) bool {
	return s.Module == x.module && s.hasPackage(path.Join(x.module, x.folder))
}

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
