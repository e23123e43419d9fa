package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestLinkedPackages: the daemon, which runs on every Node, links neither the Clientset of
// client-go, which knows every kind of Kubernetes, nor controller-runtime.
func TestLinkedPackages(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "gridproxy/topology/watch") {
		t.Fatal("the list of packages is not that of gridproxy")
	}
	for _, name := range linked {
		if name == "k8s.io/client-go/kubernetes" || strings.HasPrefix(name, "k8s.io/client-go/kubernetes/") || strings.HasPrefix(name, "sigs.k8s.io/controller-runtime") {
			t.Errorf("gridproxy links %s", name)
		}
	}
}
