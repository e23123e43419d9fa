package main

import (
	"strings"
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

func TestExitCodes(t *testing.T) { commandtest.ExitCodes(t, newRoot, "../../docs/commands.md") }

// TestLinkedPackages: the server links no type of the API of Kubernetes but names, and no client.
// Each of them would make it larger by some megabytes on every Node.
func TestLinkedPackages(t *testing.T) {
	commandtest.Linked(t, "gridproxy/rules/names", func(name string) bool {
		return name != "k8s.io/apimachinery/pkg/types" && (strings.HasPrefix(name, "k8s.io/api") || strings.HasPrefix(name, "k8s.io/client-go/"))
	})
}
