package ipvs

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

func bothFamilies() []netfilter.Family { return []netfilter.Family{netfilter.IPv4, netfilter.IPv6} }

// enter moves the test into a network namespace of its own on a kernel that has IPVS.
func enter(t testing.TB) {
	t.Helper()
	need.IPVS(t)
	need.Namespace(t)
}

// open opens the kernel of the test's namespace.
func open(t testing.TB) *kernel {
	t.Helper()
	k, err := openKernel()
	must(t, err)
	t.Cleanup(k.close)
	return k
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a program of the machine and returns what it prints.
func run(t testing.TB, stdin, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// nothingLeft checks by other eyes than ours that the namespace holds nothing of ours.
func nothingLeft(t testing.TB) {
	t.Helper()
	if left, err := os.ReadFile(procServers); err == nil && strings.Count(string(left), "\n") > 3 {
		t.Errorf("virtual servers are left:\n%s", left)
	}
	if left := run(t, "", "ip", "-o", "link"); strings.Contains(left, "ipvs") {
		t.Errorf("a link is left:\n%s", left)
	}
	if left := run(t, "", "ipset", "list", "-n"); left != "" {
		t.Errorf("sets are left:\n%s", left)
	}
	for _, tool := range []string{"iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save"} {
		if left := run(t, "", tool); strings.Contains(left, "KUBE-") {
			t.Errorf("%s: chains are left:\n%s", tool, left)
		}
	}
}

// emptyTables stands for the chains where a test is not about them.
type emptyTables struct{}

func (emptyTables) Sync(_ context.Context, _ rules.Ruleset, verify bool) (rules.Changes, error) {
	return rules.Changes{Verified: verify}, nil
}
func (emptyTables) Cleanup(context.Context) error { return nil }
func (emptyTables) Open(context.Context, bool)    {}
