package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/cmd/command/commandtest"

	"github.com/rogpeppe/go-internal/testscript"
)

// asGridproxy makes the test binary run gridproxy, for tests that need a process.
const asGridproxy = "GRIDPROXY_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if run := os.Getenv(asUnprivileged); run != "" {
		fmt.Fprintln(os.Stderr, confine(run)) // returns only where it fails
		os.Exit(100)
	}
	if os.Getenv(asGridproxy) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"gridproxy": main})
}

// TestScripts runs every command as its users do. With UPDATE=1 it writes the present output of the
// commands into the scripts instead of comparing.
func TestScripts(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Setup: func(e *testscript.Env) error {
			e.Setenv("SAMPLES", filepath.Join(here, "../../deploy/samples"))
			e.Setenv("CODE", filepath.Join(here, "../command/commandtest/code.sh"))
			e.Setenv("MANUAL", filepath.Join(here, "testdata/manual.yaml")) // the cluster of SuperEdge's manual
			return nil
		},
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	})
}

// TestManPages: each visible command and flag is in a man page.
func TestManPages(t *testing.T) { commandtest.ManPages(t, newRoot) }

// TestExitCodes: the help of each command and docs/commands.md have the same exit codes.
func TestExitCodes(t *testing.T) { commandtest.ExitCodes(t, newRoot, "../../docs/commands.md") }

// TestSuperEdgeFlags: each flag of SuperEdge's program is taken, or answered as the page says.
func TestSuperEdgeFlags(t *testing.T) {
	commandtest.SuperEdgeFlags(t, newRoot, "../../docs/migrate-from-superedge.md")
}

// TestLinkedPackages: the daemon, which runs on every Node, links neither the Clientset of
// client-go, which knows every kind of Kubernetes, nor controller-runtime.
func TestLinkedPackages(t *testing.T) {
	commandtest.Linked(t, "gridproxy/topology/watch", func(name string) bool {
		clientset := name == "k8s.io/client-go/kubernetes" || strings.HasPrefix(name, "k8s.io/client-go/kubernetes/")
		return clientset || strings.HasPrefix(name, "sigs.k8s.io/controller-runtime")
	})
}
