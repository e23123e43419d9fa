package clusterzone

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestLinkedPackages: no program links the kubernetes plugin of CoreDNS. It is what answers are
// compared with, and brings a client of the API server for every kind of object.
func TestLinkedPackages(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "gridproxy/cmd/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if !slices.Contains(linked, "github.com/coredns/coredns/plugin") {
		t.Fatal("the list of packages does not have CoreDNS")
	}
	for _, name := range linked {
		if strings.HasPrefix(name, "github.com/coredns/coredns/plugin/kubernetes") {
			t.Errorf("a package of gridproxy/cmd links %s", name)
		}
	}
}
