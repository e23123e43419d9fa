package suites

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// undelayed is how many tests cannot pass while the writes of controllers are held.
const undelayed = 2

// TestDelayed: a test that cannot pass with GRIDPROXY_TEST_DELAY says why in its first line, and
// there are few of them.
func TestDelayed(t *testing.T) {
	var found []string
	err := filepath.WalkDir(filepath.Join(root, "integration"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || !callsUndelayed(f.Body) {
				continue
			}
			if found = append(found, f.Name.Name); !callsUndelayed(f.Body.List[0]) || !strings.HasPrefix(f.Name.Name, "Test") {
				t.Errorf("%s: %s calls Undelayed, but not in the first line of a test", path, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != undelayed {
		t.Errorf("%d tests cannot pass while writes are held, want %d: %v", len(found), undelayed, found)
	}
}

// callsUndelayed reports whether nodes.Undelayed is called in a part of a function.
func callsUndelayed(part ast.Node) (found bool) {
	ast.Inspect(part, func(n ast.Node) bool {
		name, ok := n.(*ast.SelectorExpr)
		found = found || ok && name.Sel.Name == "Undelayed"
		return !found
	})
	return found
}
