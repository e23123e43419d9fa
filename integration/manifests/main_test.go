package main

import (
	"fmt"
	"os"
	"testing"
)

// TestMain turns the streaming of lists off in what is started, as with API servers before Kubernetes 1.32: there a client lists, then
// watches. The newer way asks for watch alone.
func TestMain(m *testing.M) {
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
