package main

import (
	"os"
	"path/filepath"
	"testing"

	"gridproxy/cmd/command/commandtest"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-grid": main})
}

// TestScripts runs commands as their users do, before a stand-in for an API server. With
// UPDATE=1 it writes what they print now into the scripts instead of comparing.
func TestScripts(t *testing.T) {
	server := newStandIn(t)
	code, err := filepath.Abs("../command/commandtest/code.sh")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SERVER", server)
			e.Setenv("CODE", code)
			return nil
		},
	})
}

// TestManPages: each visible command and flag is in a man page.
func TestManPages(t *testing.T) { commandtest.ManPages(t, newRoot) }

// TestExitCodes: the help of each command and docs/commands.md have the same exit codes.
func TestExitCodes(t *testing.T) { commandtest.ExitCodes(t, newRoot, "../../docs/commands.md") }
