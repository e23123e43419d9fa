package main

import (
	"strings"
	"testing"

	"gridproxy/integration/suites"
)

// TestInputsOfRows: the rows and go list name what each suite depends on, here of all suites of the
// extended tier.
func TestInputsOfRows(t *testing.T) {
	t.Chdir("../../..")
	inputs := map[string]suites.Inputs{}
	for _, s := range suites.Tiers(suites.All(), suites.Extended) {
		var err error
		if inputs[s.Name], err = inputsOf(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file         string
		with, except string // words that names of suites begin with
	}{
		{"controller/expand/decide.go", "grids migration upgrade rights", "packets rules ipvs takeover agreement"},
		{"rules/iptables/render.go", "packets rules streams scenarios helm-install security ipvs upgrade agreement takeover", "grids migration vmexec harness"},
		{"rules/ipvs/plan.go", "ipvs packets streams", "grids migration"},
		{"deploy/crds/apps.yaml", "grids migration helm-install upgrade", "packets ipvs"},
		{"docs/migrate-from-superedge.md", "migration", "grids packets upgrade"},
		{"integration/node/drain/switch_test.go", "ipvs-streams", "ipvs-cost ipvs-rules packets grids"},
		{"go.mod", "grids packets ipvs", ""},
		{"integration/env/vm/program.go", "packets- rules- ipvs vmexec", "grids streams"},
		{"integration/tools/kubernetes/go.mod", "grids streams takeover ipvs-streams", "walks packets"},
		{"integration/agreement/go.sum", "agreement ipvs-agreement", "grids packets"},
		{"integration/agreement/go-1.36.sum", "agreement-1.36", "grids packets- apiserver"},
		{"integration/tools/kubernetes/go-1.36.mod", "apiserver-1.36", "grids packets streams takeover"},
		{"README.md", "lint", "grids packets ipvs streams"},
	} {
		for name, in := range inputs {
			begins := func(words string) bool {
				for word := range strings.FieldsSeq(words) {
					if strings.HasPrefix(name, word) {
						return true
					}
				}
				return false
			}
			if has := in.Has(c.file); has && begins(c.except) || !has && begins(c.with) {
				t.Errorf("%s is an input of %s: %t", c.file, name, has)
			}
		}
	}
}
