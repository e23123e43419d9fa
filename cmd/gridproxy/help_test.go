package main

import (
	"testing"

	"gridproxy/cmd/command/commandtest"
)

// TestManPages: each visible command and flag is in a man page.
func TestManPages(t *testing.T) { commandtest.ManPages(t, newRoot) }

// TestExitCodes: the help of each command and docs/commands.md have the same exit codes.
func TestExitCodes(t *testing.T) { commandtest.ExitCodes(t, newRoot, "../../docs/commands.md") }

// TestSuperEdgeFlags: each flag of SuperEdge's program is taken, or answered as the page says.
func TestSuperEdgeFlags(t *testing.T) {
	commandtest.SuperEdgeFlags(t, newRoot, "../../docs/migrate-from-superedge.md")
}
