package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridproxy/cmd/command/commandtest"

	"sigs.k8s.io/yaml"
)

// krewManifest is what this test reads of the manifest of krew.
type krewManifest struct {
	Metadata struct{ Name string }
	Spec     struct {
		Version   string
		Platforms []struct {
			Selector struct {
				MatchLabels struct{ OS, Arch string }
			}
			URI, SHA256, Bin string
			Files            []struct{ From, To string }
		}
	}
}

// TestKrewManifest: the name is that of the binary, and each platform has its own archive, sum and
// program, so that a release need only fill the placeholders.
func TestKrewManifest(t *testing.T) {
	text, err := os.ReadFile("../../deploy/krew/grid.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m krewManifest
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.Metadata.Name != "grid" || m.Spec.Version != "__VERSION__" || len(m.Spec.Platforms) < 5 {
		t.Errorf("%+v", m)
	}
	for _, p := range m.Spec.Platforms {
		system, processor := p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch
		program := "kubectl-grid"
		if system == "windows" {
			program += ".exe"
		}
		if !strings.HasSuffix(p.URI, "/releases/download/__VERSION__/kubectl-grid_"+system+"_"+processor+".tar.gz") ||
			p.SHA256 != strings.ToUpper("__SHA256_"+system+"_"+processor+"__") || p.Bin != program || len(p.Files) != 2 || p.Files[0].From != program {
			t.Errorf("%s/%s: %+v", system, processor, p)
		}
	}
	known := regexp.MustCompile(`^__(VERSION|HOMEPAGE|SHA256_[A-Z]+_[A-Z0-9]+)__$`)
	for _, placeholder := range regexp.MustCompile(`__\w+?__`).FindAllString(string(text), -1) {
		if !known.MatchString(placeholder) {
			t.Errorf("placeholder %s", placeholder)
		}
	}
}

// TestRunsEverywhere: of the module's packages and those it requires, the ones that build on Linux
// only are not linked. A build for another system would take minutes.
func TestRunsEverywhere(t *testing.T) {
	commandtest.Linked(t, "gridproxy/cmd/inspect/matrix", func(name string) bool {
		return slices.ContainsFunc([]string{
			"gridproxy/topology/manifest", "gridproxy/rules/host", "github.com/vishvananda/", "github.com/moby/ipvs", "github.com/coreos/go-iptables",
		}, func(linux string) bool { return strings.HasPrefix(name, linux) })
	})
}
