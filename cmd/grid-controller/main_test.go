package main

import (
	"os"
	"testing"

	"gridproxy/cmd/command/commandtest"

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

// TestManPages: each visible command and flag is in a man page.
func TestManPages(t *testing.T) { commandtest.ManPages(t, newRoot) }

// TestExitCodes: the help of each command and docs/commands.md have the same exit codes.
func TestExitCodes(t *testing.T) { commandtest.ExitCodes(t, newRoot, "../../docs/commands.md") }

// TestSuperEdgeFlags: each flag of SuperEdge's program is taken, or answered as the page says.
func TestSuperEdgeFlags(t *testing.T) {
	commandtest.SuperEdgeFlags(t, newRoot, "../../docs/migrate-from-superedge.md")
}

// TestBounds: each flag with a duration, a path or an address has a bound, or a reason.
func TestBounds(t *testing.T) {
	const (
		read = "a file that people name to commands too, from their folder; one that is missing is an error with its name"
		name = "the name of an object, which the API server checks"
	)
	commandtest.Bounds(t, newRoot, map[string]commandtest.FlagBound{
		"leader-elect-lease-duration": {Beyond: "1h0m1s"},
		"leader-elect-renew-deadline": {Beyond: "15s"}, // the duration of the Lease
		"leader-elect-retry-period":   {Beyond: "9s"},
		"unit-removal-grace":          {Beyond: "-1s"}, // without an end, because never is taken too
		"token-lifetime":              {Beyond: "87600h"},
		"timeout":                     {Beyond: "1h0m1s"},

		"kubeconfig":        {Why: read},
		"member-kubeconfig": {Why: read},
		"filename":          {Why: read},

		"artifact-bind-address": {Beyond: ":9790"},
		"healthz-bind-address":  {Beyond: ":8081"},
		"metrics-bind-address":  {Beyond: ":8080"},
		"artifact-url":          {Beyond: "grid-artifacts"},
		"server":                {Beyond: "http://hub.example.com"},

		"accept-namespaces":               {Beyond: "A"},
		"namespaces":                      {Beyond: "A"},
		"join namespace":                  {Beyond: "A"},
		"expand namespace":                {Why: name},
		"default-node-unit":               {Why: name},
		"leader-elect-resource-name":      {Why: name},
		"leader-elect-resource-namespace": {Why: name},
		"unit-removal-budget":             {Beyond: "101%"},
	})
}
