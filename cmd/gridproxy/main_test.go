package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

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
