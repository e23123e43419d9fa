package suites

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// realTime begins the comment above a line that may use the clock of the machine. It says why.
	realTime = "// real time: "
	// maxRealTime is how many such comments there may be in all tests.
	maxRealTime = 30
)

// TestNoElapsedTime: no test judges by the clock of the machine, which may be busy. Tests wait for
// a condition, or run in a bubble of testing/synctest, or say why they cannot.
func TestNoElapsedTime(t *testing.T) {
	packages := map[string]*testFiles{}
	err := walkGo(func(file string) error {
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		folder := filepath.Dir(file)
		if packages[folder] == nil {
			packages[folder] = newTestFiles()
		}
		return packages[folder].parse(file, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	marks := 0
	for _, p := range packages {
		marks += len(p.marks)
		for _, problem := range p.problems() {
			t.Error(problem)
		}
	}
	if marks > maxRealTime {
		t.Errorf("%d comments begin with %q, want at most %d", marks, realTime, maxRealTime)
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
		"in a bubble":                {"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }", 0},
		"helper in a bubble":         {"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { helper() }) }" + helper, 0},
		"helper elsewhere too":       {"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { helper() }); helper() }" + helper, 1},
		"method of a bubble's value": {"func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { use(&fake{}) }) }\nfunc (f *fake) Do() { time.Sleep(1) }", 0},
		"helper opens the bubble":    {"func TestA(t *testing.T) { run(func() { time.Sleep(1) }) }\nfunc run(f func()) { synctest.Test(t, func(t *testing.T) { f() }) }", 0},
		"marked":                     {"func TestA(t *testing.T) {\n\t// real time: the kernel has no other\n\ttime.Sleep(1)\n}", 0},
		"marked without a reason":    {"func TestA(t *testing.T) {\n\t// real time:\n\ttime.Sleep(1)\n}", 1},
		"mark of nothing":            {"func TestA(t *testing.T) {\n\t// real time: the kernel has no other\n\tt.Log()\n}", 1},
	} {
		p := newTestFiles()
		if err := p.parse(name, "package a\n"+c.text); err != nil {
			t.Fatal(err)
		}
		if got := p.problems(); len(got) != c.want {
			t.Errorf("%s: %q, want %d problems", name, got, c.want)
		}
	}
}

// testFiles are the test files of a folder.
type testFiles struct {
	set     *token.FileSet
	files   []*ast.File
	marks   map[string]token.Pos // comments that allow real time, by place of the line below
	bubbles []ast.Node           // what runs inside synctest.Test only
}

func newTestFiles() *testFiles {
	return &testFiles{set: token.NewFileSet(), marks: map[string]token.Pos{}}
}

// parse adds a file. text is its content, or nil to read it.
func (p *testFiles) parse(name string, text any) error {
	file, err := parser.ParseFile(p.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p.files = append(p.files, file)
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, realTime) {
				below := p.set.Position(c.End())
				below.Line++
				p.marks[lineOf(below)] = c.Pos()
			}
		}
	}
	return nil
}

// problems returns uses of the clock that are neither in a bubble nor marked, and marks without
// use.
func (p *testFiles) problems() (all []string) {
	p.findBubbles()
	used := map[string]bool{}
	for _, use := range p.clockUses() {
		at := lineOf(p.set.Position(use))
		if _, marked := p.marks[at]; marked {
			used[at] = true
		} else if !p.inBubble(use) {
			all = append(all, at+": time.Sleep, time.After or a comparison with time.Since: wait for a condition, or use testing/synctest")
		}
	}
	for at := range p.marks {
		if !used[at] {
			all = append(all, at+": the comment above needs no "+realTime)
		}
	}
	return all
}

func lineOf(at token.Position) string {
	at.Column, at.Offset = 0, 0
	return at.String()
}

// clockUses returns where Sleep and After are named, and where what Since returned is compared.
func (p *testFiles) clockUses() (at []token.Pos) {
	p.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if isSelector(n, "time", "Sleep") || isSelector(n, "time", "After") {
				at = append(at, n.Pos())
			}
		case *ast.FuncDecl:
			at = append(at, comparedTimes(n)...)
		}
	})
	return at
}

// comparedTimes returns where a function compares what time.Since returned, also by way of a
// variable.
func comparedTimes(f *ast.FuncDecl) (at []token.Pos) {
	elapsed := map[string]bool{}
	hasElapsed := func(e ast.Node) (found bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			id, isName := n.(*ast.Ident)
			found = found || isSelector(n, "time", "Since") || isName && elapsed[id.Name]
			return !found
		})
		return found
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Lhs) == 1 && hasElapsed(n.Rhs[0]) {
				elapsed[name.Name] = true
			}
		case *ast.BinaryExpr:
			comparisons := []token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ}
			if slices.Contains(comparisons, n.Op) && (hasElapsed(n.X) || hasElapsed(n.Y)) {
				at = append(at, n.Pos())
				return false
			}
		}
		return true
	})
	return at
}

// findBubbles finds what only runs inside synctest.Test: its arguments, functions that are named
// there alone, methods of types whose values are made there alone, and functions that are given to
// one that calls them there.
func (p *testFiles) findBubbles() {
	mentions := map[string][]token.Pos{} // of functions, and of types in literals with a dot before
	p.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if isSelector(n.Fun, "synctest", "Test") {
				p.bubbles = append(p.bubbles, n)
			}
		case *ast.Ident:
			mentions[n.Name] = append(mentions[n.Name], n.Pos())
		case *ast.CompositeLit:
			if name, ok := n.Type.(*ast.Ident); ok {
				mentions["."+name.Name] = append(mentions["."+name.Name], n.Pos())
			}
		}
	})
	isOutside := func(at token.Pos) bool { return !p.inBubble(at) }
	for before := -1; before != len(p.bubbles); {
		before = len(p.bubbles)
		p.inspect(func(n ast.Node) {
			switch n := n.(type) {
			case *ast.FuncDecl:
				at := mentions[n.Name.Name]
				if n.Recv != nil {
					at = mentions["."+receiverOf(n)]
				}
				at = slices.DeleteFunc(slices.Clone(at), func(at token.Pos) bool { return at == n.Name.Pos() })
				if n.Body != nil && len(at) > 0 && !p.inBubble(n.Body.Pos()) && !slices.ContainsFunc(at, isOutside) {
					p.bubbles = append(p.bubbles, n.Body)
				}
			case *ast.CallExpr:
				for i, argument := range n.Args {
					if _, ok := argument.(*ast.FuncLit); ok && !p.inBubble(argument.Pos()) && p.callsInBubble(n.Fun, i) {
						p.bubbles = append(p.bubbles, argument)
					}
				}
			}
		})
	}
}

// callsInBubble reports whether a function calls its i-th parameter in a bubble only.
func (p *testFiles) callsInBubble(function ast.Expr, i int) (found bool) {
	name, ok := function.(*ast.Ident)
	if !ok {
		return false
	}
	p.inspect(func(n ast.Node) {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Name.Name != name.Name {
			return
		}
		var parameters []*ast.Ident
		for _, field := range f.Type.Params.List {
			parameters = append(parameters, field.Names...)
		}
		if i >= len(parameters) {
			return
		}
		inside, outside := 0, 0
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == parameters[i].Name {
					if p.inBubble(call.Pos()) {
						inside++
					} else {
						outside++
					}
				}
			}
			return true
		})
		found = inside > 0 && outside == 0
	})
	return found
}

func (p *testFiles) inBubble(at token.Pos) bool {
	return slices.ContainsFunc(p.bubbles, func(n ast.Node) bool { return n.Pos() <= at && at < n.End() })
}

func (p *testFiles) inspect(visit func(ast.Node)) {
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			visit(n)
			return true
		})
	}
}

func isSelector(n ast.Node, pkg, name string) bool {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == pkg && s.Sel.Name == name
}

func receiverOf(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
