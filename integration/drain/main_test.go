package drain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"gridproxy/integration/lab"
	"gridproxy/integration/need"
)

// program is where TestMain built gridproxy; empty when there is nothing to run it with.
// It is set once, before the first test.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if missing() != "" {
		return m.Run() // every test says so
	}
	dir, err := os.MkdirTemp("", "gridproxy-drain-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program, err = lab.BuildGridproxy(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// needIPVS skips a test on a kernel without IPVS.
func needIPVS(t *testing.T) {
	t.Helper()
	need.IPTables(t)
	need.Tools(t, "run `apt-get install ipset ipvsadm`", "ipset", "ipvsadm")
	m := missing()
	need.That(t, m == "", m)
}

// missing is what this machine lacks; "" = nothing.
func missing() string {
	if m := need.MissingIPTables(); m != "" {
		return m
	}
	_ = exec.Command("modprobe", "-a", "ip_vs", "dummy").Run() // what counts is what is there then
	if _, err := os.Stat("/proc/net/ip_vs"); err != nil {
		return "this kernel has no IPVS: run `make test-ipvs`, which boots one that has"
	}
	return ""
}

// eachVariant runs a test with both kinds of iptables, one after the other: they share one
// emulated processor.
func eachVariant(t *testing.T, test func(*testing.T, string)) {
	t.Helper()
	needIPVS(t)
	for _, variant := range []string{"nft", "legacy"} {
		t.Run(variant, func(t *testing.T) { test(t, variant) })
	}
}
