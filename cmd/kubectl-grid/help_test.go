package main

import (
	"testing"

	"gridproxy/cmd/command/commandtest"
)

// TestManPages: each visible command and flag is in a man page.
func TestManPages(t *testing.T) { commandtest.ManPages(t, newRoot) }
