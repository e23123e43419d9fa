package nodes

import (
	"testing"

	"gridproxy/integration/env/wait"
)

// StopAPIServer kills the API server, as a crash does. Everybody else lives on without it.
func (c *Cluster) StopAPIServer() { c.API.Stop() }

// StartAPIServer starts it again at the same address, and returns when it is ready. Controllers of
// Kubernetes come back when their own pauses between attempts end, which may be 30 s later.
func (c *Cluster) StartAPIServer(t testing.TB) {
	t.Helper()
	if err := c.API.Start(wait.Usual.Context(t)); err != nil {
		t.Fatal(err)
	}
}
