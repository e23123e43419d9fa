package suites

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

const (
	realTime    = "// real time: " // begins the comment above a line that needs the clock; it says why
	maxRealTime = 30               // such comments in all tests
)

// TestNoElapsedTime: no test judges by the clock of the machine, which may be busy. Tests wait for
// a condition, or run in a bubble of testing/synctest, or say why they cannot.
func TestNoElapsedTime(t *testing.T) {
	set, folders := parseTests(t)
	marks := 0
	for _, files := range folders {
		problems, marked := clockProblems(set, files)
		for _, problem := range problems {
			t.Error(problem)
		}
		marks += marked
	}
	if marks == 0 || marks > maxRealTime {
		t.Errorf("%d comments begin with %q, want 1 to %d", marks, realTime, maxRealTime)
	}
}

func TestElapsedTimeIsFound(t *testing.T) {
	const helper = "\nfunc helper() { time.Sleep(1) }"
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"sleep":                      {"func TestA(t *testing.T) { time.Sleep(1) }", 1},
		"after":                      {"func TestA(t *testing.T) { select { case <-time.After(1): } }", 1},
		"since is printed":           {"func TestA(t *testing.T) { t.Log(time.Since(begin)) }", 0},
		"since is compared":          {"func TestA(t *testing.T) { if time.Since(begin).Seconds() > 1 { t.Fail() } }", 1},
		"since is compared later":    {"func TestA(t *testing.T) { took := time.Since(begin); if took > 1 { t.Fail() } }", 1},
		"since is in an error":       {"func TestA(t *testing.T) { took := time.Since(begin); err = errors.Join(err, fmt.Errorf(took)); if err != nil { t.Fatal(err) } }", 0},
		"in a bubble":                {"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }", 0},
		"helper in a bubble":         {"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { helper() }) }" + helper, 0},
		"helper elsewhere too":       {"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { helper() }); helper() }" + helper, 1},
		"method of a bubble's value": {"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { use(&fake{}) }) }\nfunc (f *fake) Do() { time.Sleep(1) }", 0},
		"helper opens the bubble":    {"func TestA(t *testing.T) { run(func() { time.Sleep(1) }) }\nfunc run(f func()) { t.Helper(); synctest.Test(t, func(t *testing.T) { f() }) }", 0},
		"helper does more":           {"func TestA(t *testing.T) { run(func() { time.Sleep(1) }) }\nfunc run(f func()) { f(); synctest.Test(t, func(t *testing.T) { f() }) }", 1},
		"marked":                     {"func TestA(t *testing.T) {\n\t// real time: the kernel has no other\n\ttime.Sleep(1)\n}", 0},
		"marked without a reason":    {"func TestA(t *testing.T) {\n\t// real time:\n\ttime.Sleep(1)\n}", 1},
		"mark of nothing":            {"func TestA(t *testing.T) {\n\t// real time: the kernel has no other\n\tt.Log()\n}", 1},
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, "package a\n"+c.text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := clockProblems(set, []*ast.File{file}); len(got) != c.want {
			t.Errorf("%s: %q, want %d problems", name, got, c.want)
		}
	}
}

// clockProblems returns where the test files of a folder use the clock outside of bubbles and
// without a mark, and which marks are above no such use. It also returns how many marks there are.
func clockProblems(set *token.FileSet, files []*ast.File) (problems []string, marks int) {
	used := map[token.Position]bool{} // by line: whether the mark above it is needed
	lineOf := func(at token.Pos) token.Position {
		p := set.Position(at)
		return token.Position{Filename: p.Filename, Line: p.Line}
	}
	bubbles := findBubbles(files)
	for _, file := range files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if below := lineOf(c.Pos()); strings.HasPrefix(c.Text, realTime) {
					below.Line++
					used[below] = false
				}
			}
		}
		for _, use := range clockUses(file) {
			at := lineOf(use.Pos())
			if _, marked := used[at]; marked {
				used[at] = true
			} else if !isInside(use, bubbles) {
				problems = append(problems, at.String()+": time.Sleep, time.After or a comparison with time.Since: wait for a condition, or use testing/synctest")
			}
		}
	}
	for at, needed := range used {
		if !needed {
			problems = append(problems, at.String()+": this line needs no "+realTime+"above it")
		}
	}
	return problems, len(used)
}

// clockUses returns where Sleep and After are named, and where what Since returned is compared,
// also by way of variables.
func clockUses(file *ast.File) (uses []ast.Node) {
	var elapsed []string // Since, and the variables of the function that depend on it
	for n := range ast.Preorder(file) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			elapsed = []string{"time.Since"}
		case *ast.AssignStmt:
			name := types.ExprString(n.Lhs[0])
			if len(n.Lhs) == 1 && name != "err" && mentions(n.Rhs[0], elapsed...) { // an error is no time
				elapsed = append(elapsed, name)
			}
		case *ast.BinaryExpr:
			if n.Op.Precedence() == token.EQL.Precedence() && mentions(n, elapsed...) {
				uses = append(uses, n)
			}
		case *ast.SelectorExpr:
			if isNamed(n, "time.Sleep", "time.After") {
				uses = append(uses, n)
			}
		}
	}
	return uses
}

// findBubbles returns what only runs inside synctest.Test: calls of it, and of functions that only
// call it; functions that are named there alone, and methods of types whose values are made there
// alone.
func findBubbles(files []*ast.File) (bubbles []ast.Node) {
	var functions []*ast.FuncDecl
	var calls []*ast.CallExpr
	opens := map[string]bool{"synctest.Test": true}
	places := map[string][]ast.Node{} // of functions, and of types where values are made
	for _, file := range files {
		for n := range ast.Preorder(file) {
			switch n := n.(type) {
			case *ast.FuncDecl:
				functions = append(functions, n)
				opens[n.Name.Name] = opens[n.Name.Name] || n.Recv == nil && onlyOpensBubble(n)
			case *ast.CallExpr:
				calls = append(calls, n)
			case *ast.Ident:
				places[n.Name] = append(places[n.Name], n)
			case *ast.CompositeLit:
				name := "*" + types.ExprString(n.Type)
				places[name] = append(places[name], n)
			}
		}
	}
	for _, call := range calls {
		if opens[types.ExprString(call.Fun)] {
			bubbles = append(bubbles, call)
		}
	}
	for before := -1; before != len(bubbles); {
		before = len(bubbles)
		for _, f := range functions {
			name := f.Name.Name
			if f.Recv != nil {
				name = "*" + strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")
			}
			others := slices.DeleteFunc(slices.Clone(places[name]), func(n ast.Node) bool { return n == f.Name })
			isOutside := func(n ast.Node) bool { return !isInside(n, bubbles) }
			if isOutside(f) && len(others) > 0 && !slices.ContainsFunc(others, isOutside) {
				bubbles = append(bubbles, f)
			}
		}
	}
	return bubbles
}

// onlyOpensBubble reports whether a function calls synctest.Test, and nothing outside of it.
func onlyOpensBubble(f *ast.FuncDecl) bool {
	return f.Body != nil && !slices.ContainsFunc(f.Body.List, func(s ast.Stmt) bool {
		e, ok := s.(*ast.ExprStmt)
		return !ok || !isNamed(e.X, "synctest.Test", "t.Helper")
	})
}

func isInside(n ast.Node, bubbles []ast.Node) bool {
	return slices.ContainsFunc(bubbles, func(b ast.Node) bool { return b.Pos() <= n.Pos() && n.End() <= b.End() })
}

// mentions reports whether a part of the code is one of these names.
func mentions(code ast.Node, names ...string) bool {
	for n := range ast.Preorder(code) {
		if isNamed(n, names...) {
			return true
		}
	}
	return false
}

// isNamed reports whether the code is one of these names, such as time.Sleep, or calls it.
func isNamed(n ast.Node, names ...string) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		return isNamed(n.Fun, names...)
	case *ast.Ident, *ast.SelectorExpr:
		return slices.Contains(names, types.ExprString(n.(ast.Expr)))
	}
	return false
}
