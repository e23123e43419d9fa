package drain

import (
	"context"
	"fmt"
	"os"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
)

// program is where TestMain built gridproxy; empty when there is nothing to run it with.
// It is set once, before the first test.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if need.MissingIPTables() != "" || need.MissingIPVS() != "" {
		return m.Run() // every test says so
	}
	dir, err := os.MkdirTemp("", "gridproxy-drain-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program, err = netns.BuildGridproxy(context.Background(), dir); err != nil {
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
	need.IPVS(t)
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
