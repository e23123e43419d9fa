package kernel

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
	if need.MissingIPTables() != "" {
		return m.Run() // every test says so
	}
	dir, err := os.MkdirTemp("", "gridproxy-kernel-test-")
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
