package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/suites"
)

// TestNearRows: which extended suites a changed file brings to the front.
func TestNearRows(t *testing.T) {
	for _, c := range []struct {
		file         string
		with, except string // words that names of suites begin with
	}{
		{"controller/grid/expand/decide.go", "grids migration", "packets rules ipvs takeover agreement federation"},
		{"controller/federation/hub/plan/plan.go", "federation", "grids packets ipvs harness"},
		{"rules/iptables/render/fixed.go", "packets rules streams scenarios upgrade agreement takeover walks-chains", "grids migration vmexec harness helm"},
		{"rules/ipvs/plan.go", "ipvs-packets ipvs-rules ipvs-cost ipvs-switch", "grids migration packets streams"},
		{"deploy/crds/apps.yaml", "grids migration helm-install upgrade", "packets ipvs"},
		{"docs/migrate-from-superedge.md", "migration lint", "grids packets upgrade"},
		{"integration/node/drain/switch_test.go", "ipvs-streams ipvs-switch", "ipvs-cost ipvs-rules packets grids"},
		{"go.mod", "", "grids packets ipvs rules streams agreement walks federation upgrade chart lint"},
		{"integration/env/netns/pod.go", "lint", "grids packets ipvs streams"},
		{"integration/env/vm/program.go", "vmexec", "grids streams packets"},
		{"integration/tools/kubernetes/go.mod", "grids streams takeover ipvs-switch", "walks packets"},
		{"integration/agreement/go.sum", "agreement ipvs-agreement", "grids packets"},
		{"integration/agreement/go-1.36.sum", "agreement-1.36", "grids packets- apiserver"},
		{"integration/tools/kubernetes/go-1.36.mod", "apiserver-1.36", "grids packets streams takeover"},
		{"README.md", "lint pages", "grids packets ipvs streams"},
	} {
		for _, s := range suites.Tiers(suites.All(), suites.Extended) {
			s.Reads = slices.Concat(s.Reads, modulesOf(s))
			begins := func(words string) bool {
				return slices.ContainsFunc(strings.Fields(words), func(w string) bool { return strings.HasPrefix(s.Name, w) })
			}
			if near := s.IsNear(c.file); near && begins(c.except) || !near && begins(c.with) {
				t.Errorf("%s is near to %s: %t", c.file, s.Name, near)
			}
		}
	}
}

// TestOrderedByHistory: CI_BASE says what counts as a change, also while other commits are newer.
// An unknown base, or a folder without a history, is no reason not to run.
func TestOrderedByHistory(t *testing.T) {
	table := []suites.Suite{
		{Name: "docs", Tier: suites.Extended, Reads: []string{"docs"}},
		{Name: "deploy", Tier: suites.Extended, Reads: []string{"deploy"}},
	}
	t.Chdir(t.TempDir())
	nearTo := func(base string) string {
		order, near := ordered(t.Context(), base, table)
		if len(order) != len(table) {
			t.Errorf("%d suites run since %q, want all", len(order), base)
		}
		var names []string
		for _, s := range order[:near] {
			names = append(names, s.Name)
		}
		return strings.Join(names, " ")
	}
	if got := nearTo(""); got != "" {
		t.Errorf("without a history %s is near", got)
	}
	commit := func(folder, date string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", `git init -q; mkdir -p "$0"; echo "$1" > "$0"/page; git add .
			git -c user.name=a -c user.email=a@example.org commit -q -m page; git rev-parse HEAD`, folder, date)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_COMMITTER_DATE="+date)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	first := commit("docs", "2020-01-01T00:00:00Z")
	second := commit("deploy", "2020-01-02T00:00:00Z")
	for base, want := range map[string]string{"": "", first: "deploy", second: "", "0000000": ""} {
		if got := nearTo(base); got != want {
			t.Errorf("since %q %q is near, want %q", base, got, want)
		}
	}
}
