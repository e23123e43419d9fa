package main

import (
	"testing"

	"gridproxy/cmd/command/commandtest"
)

func TestExitCodes(t *testing.T) { commandtest.ExitCodes(t, newRoot, "../../docs/commands.md") }
