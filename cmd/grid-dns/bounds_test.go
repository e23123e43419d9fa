package main

import (
	"testing"

	"gridproxy/cmd/command/commandtest"
)

// TestBounds: each flag with a duration, a path or an address has a bound, or a reason.
func TestBounds(t *testing.T) {
	commandtest.Bounds(t, newRoot, map[string]commandtest.FlagBound{
		"address":              {Beyond: "0.0.0.0"},
		"metrics-bind-address": {Beyond: ":9253"},
		"names-socket":         {Beyond: "names.sock"},
		"names-file":           {Beyond: "grid-dns.names"},
		"resolv-conf":          {Beyond: "./resolv.conf"},
		"cluster-domain":       {Why: "a name, which the server answers or not"},
	})
}
