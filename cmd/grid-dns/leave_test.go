package main

import (
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/wait"
)

// TestDaemonEndsMeanwhile: a server whose daemon ends just after it has been asked to end itself
// goes on answering. The daemon may have ended before it led queries elsewhere, as when both are
// removed.
func TestDaemonEndsMeanwhile(t *testing.T) {
	m, s, end := newServing(t)
	if err := m.server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.reported(s, false)
	end()
	wait.Until(m.t, "the server says that it stays", func() error {
		select {
		case <-m.server.done:
			t.Fatal("it has ended")
		default:
		}
		return wait.Check(strings.Contains(m.server.logged(), "no daemon hears that this server leaves"), "it does not")
	})
	m.want(db, "10.0.0.7")
}
