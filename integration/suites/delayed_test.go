package suites

import (
	"go/ast"
	"strings"
	"testing"
)

// undelayed is how many tests cannot pass while the writes of controllers are held.
const undelayed = 2

// TestDelayed: a test that cannot pass with GRIDPROXY_TEST_DELAY says why in its first line, and
// there are few of them.
func TestDelayed(t *testing.T) {
	var found []string
	set, folders := parseTests(t)
	for _, files := range folders {
		for _, file := range files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body == nil || !mentions(f.Body, "nodes.Undelayed") {
					continue
				}
				if found = append(found, f.Name.Name); !mentions(f.Body.List[0], "nodes.Undelayed") || !strings.HasPrefix(f.Name.Name, "Test") {
					t.Errorf("%s: %s calls Undelayed, but not in the first line of a test", set.Position(f.Pos()), f.Name.Name)
				}
			}
		}
	}
	if len(found) != undelayed {
		t.Errorf("%d tests cannot pass while writes are held, want %d: %v", len(found), undelayed, found)
	}
}
