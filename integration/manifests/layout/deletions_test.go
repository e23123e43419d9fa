package layout

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// deletions are the messages of grid-controller that ask for a deletion, by a part of their text,
// with what goes with what is deleted. One that ends Pods says so, or is about Pods that are to
// end.
func deletions() map[string]string {
	return map[string]string{
		"prune or ssa in the cluster, and remove that, or delete it there":  "a Grid that the hub has withdrawn: its Pods are to end",
		"kubectl delete gridbundle %s.applied, in the namespace":            "a copy of what is applied: nothing else",
		"If that hub is gone, delete Kustomization grids-%s, ":              "a Kustomization: its Grids stay, as the next words say",
		"those Grids with kubectl delete --cascade=orphan, which leaves":    "Grids: children and Pods stay",
		"kubectl delete --cascade=orphan -n %s %s %s":                       "a Grid: children and Pods stay",
		"which would have more than %d Grids of it: delete Grids, ":         "Grids that a user does not need, with their Pods",
		"which would have more than %d Grids: delete Grids, ":               "Grids that a user does not need, with their Pods",
		"delete the object with --cascade=orphan, which leaves its Pods":    "a child: its Pods stay",
		"or delete it with --cascade=orphan, which leaves its Pods":         "a foreign workload: its Pods stay",
		"to delete it, add %s to the Grid's annotation %s":                  "the child of a unit without Nodes: no Pod of it runs",
		"these children are kept; set gridUniqKey back, or delete them by":  "children of a former key, with their Pods, which the message says are kept",
		"and the labels of the Nodes; to delete units anyway, name them":    "children of units without Nodes: no Pod of them runs",
		"check that these sites have really gone; to delete them without":   "children of units without Nodes: no Pod of them runs",
		"; they are not evicted: delete them to move them into the unit":    "Pods on Nodes outside their unit: they start again inside",
		"0s to delete at once, or never":                                    "children of units without Nodes: no Pod of them runs",
		"Apply the manifest: kubectl apply --server-side -f FILE. Then del": "a file",
		"and delete the token: kubectl --namespace %s delete secret %s":     "a Secret with a token that is of no use any more",
	}
}

// TestDeletions: each message that asks a person to delete something is known, with what goes with
// it.
func TestDeletions(t *testing.T) {
	asks, found := regexp.MustCompile(`\bdelete\b`), map[string]bool{}
	for _, path := range goFiles(t, "controller", "cmd/grid-controller") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(parsed(t, path), func(n ast.Node) bool {
			literal, is := n.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil || !asks.MatchString(text) || !strings.Contains(text, " ") {
				return true
			}
			known := false
			for part := range deletions() {
				if strings.Contains(text, part) {
					known, found[part] = true, true
				}
			}
			if !known {
				t.Errorf("%s asks for a deletion: %q: say what goes with what is deleted, and add it to deletions", path, text)
			}
			return true
		})
	}
	for part := range deletions() {
		if !found[part] {
			t.Errorf("no message has %q: remove it from deletions", part)
		}
	}
	for _, page := range []string{"grids.md", "troubleshooting.md", "federation.md"} {
		for line := range strings.Lines(read(t, "docs/"+page)) {
			if strings.Contains(line, "NameCollision") && strings.Contains(line, "delete") && !strings.Contains(line, "--cascade=orphan") {
				t.Errorf("%s asks for a deletion that ends Pods: %s", page, line)
			}
		}
	}
}
