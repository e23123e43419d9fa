package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"grid-controller": main})
}

// TestScripts runs commands as their users do. With UPDATE=1 it writes what they print now
// into the scripts instead of comparing.
func TestScripts(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SAMPLES", here+"/../../deploy/samples")
			e.Setenv("CODE", here+"/../command/commandtest/code.sh")
			return nil
		},
	})
}
