package main

import (
	"strings"
	"testing"

	"gridproxy/cmd/command/commandtest"
)

// TestLinkedPackages: the daemon, which runs on every Node, links neither the Clientset of
// client-go, which knows every kind of Kubernetes, nor controller-runtime.
func TestLinkedPackages(t *testing.T) {
	commandtest.Linked(t, "gridproxy/topology/watch", func(name string) bool {
		clientset := name == "k8s.io/client-go/kubernetes" || strings.HasPrefix(name, "k8s.io/client-go/kubernetes/")
		return clientset || strings.HasPrefix(name, "sigs.k8s.io/controller-runtime")
	})
}
