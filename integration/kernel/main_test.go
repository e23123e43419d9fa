package kernel

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"gridproxy/integration/lab"
)

// program is where TestMain built gridproxy; empty when there is nothing to run it with.
// It is set once, before the first test.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if missing() != "" {
		return m.Run() // every test says so
	}
	dir, err := os.MkdirTemp("", "gridproxy-kernel-test-")
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

// missing says what the machine lacks, and how to get it; empty if nothing.
func missing() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root: run `sudo make test`"
	}
	for _, tool := range []string{"iptables-nft-save", "iptables-legacy-save", "ip6tables-nft-save", "ip6tables-legacy-save"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is missing: run `apt-get install iptables`"
		}
	}
	return ""
}

// need skips a test where something is missing, or fails it where skips are not allowed.
func need(t *testing.T, what string) {
	t.Helper()
	if what == "" {
		return
	}
	if os.Getenv("GRIDPROXY_REQUIRE") == "all" {
		t.Fatal(what)
	}
	t.Skip("SKIPPED: " + what)
}

// eachVariant runs a test with both kinds of iptables, side by side.
func eachVariant(t *testing.T, test func(*testing.T, string)) {
	t.Helper()
	need(t, missing())
	for _, variant := range []string{"nft", "legacy"} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			test(t, variant)
		})
	}
}
