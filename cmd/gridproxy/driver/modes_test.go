package driver

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridproxy/cmd/gridproxy/options"
)

// TestEveryModeHasADriver: options and this package know the same modes.
func TestEveryModeHasADriver(t *testing.T) {
	var names []options.Mode
	for _, m := range modes() {
		names = append(names, m.name)
		if own, others := inUse(options.Options{ProxyMode: m.name}); own.name != m.name || len(others) != len(modes())-1 {
			t.Errorf("mode %s: in use is %s, beside %d others", m.name, own.name, len(others))
		}
	}
	if want := options.Modes(); !slices.Equal(names, want) {
		t.Errorf("drivers for %v, options for %v", names, want)
	}
}

// namesModes are the folders that may name a mode, with the reason.
func namesModes() map[string]string {
	return map[string]string{
		"driver":  "it is the place",
		"options": "it parses the name of the mode, and the flags that only one mode has",
	}
}

// TestModesAreNamedHereAlone: no other package of gridproxy names a mode, compares the mode in use
// or imports what implements one. A third mode would have to be added there.
func TestModesAreNamedHereAlone(t *testing.T) {
	for _, root := range []string{"..", "../../inspect"} { // cmd/gridproxy, and what its commands print
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			folder, _ := filepath.Rel(root, filepath.Dir(path))
			if _, may := namesModes()[folder]; may || !strings.HasSuffix(path, ".go") {
				return nil
			}
			for _, line := range modesIn(t, path) {
				t.Error(line)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// modesIn are the lines of a file that name a mode.
func modesIn(t *testing.T, path string) (lines []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(n ast.Node, what string) {
		lines = append(lines, fmt.Sprintf("%s: %s", files.Position(n.Pos()), what))
	}
	for _, i := range file.Imports {
		if name, _ := strconv.Unquote(i.Path.Value); name == "gridproxy/rules/iptables" || name == "gridproxy/rules/ipvs" {
			add(i, "imports "+name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Name == "ModeIPVS" || n.Name == "ModeIPTables" {
				add(n, "names "+n.Name)
			}
		case *ast.BinaryExpr:
			if selectsMode(n.X) || selectsMode(n.Y) {
				add(n, "compares the mode in use")
			}
		case *ast.SwitchStmt:
			if selectsMode(n.Tag) {
				add(n, "switches on the mode in use")
			}
		}
		return true
	})
	return lines
}

// selectsMode says that an expression is the mode in use.
func selectsMode(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "ProxyMode"
}
