package main

import (
	"strings"
	"testing"

	"gridproxy/cmd/command/commandtest"
)

// TestLinkedPackages: the server links no type of the API of Kubernetes but names, and no client.
// Each of them would make it larger by some megabytes on every Node.
func TestLinkedPackages(t *testing.T) {
	commandtest.Linked(t, "gridproxy/rules/names", func(name string) bool {
		return name != "k8s.io/apimachinery/pkg/types" && (strings.HasPrefix(name, "k8s.io/api") || strings.HasPrefix(name, "k8s.io/client-go/"))
	})
}
