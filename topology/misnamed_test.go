package topology

import (
	"fmt"
	"strings"
	"testing"
)

// TestMisnamed: names that people write by mistake, or that other projects read, are found, and
// those that are about something else are not.
func TestMisnamed(t *testing.T) {
	for name, want := range map[string]string{
		"topologykeys":                  AnnotationKeys,
		"topologyKey":                   AnnotationKeys,
		"toplogyKeys":                   AnnotationKeys,
		"topology-keys":                 AnnotationKeys,
		"superedge.io/topologyKeys":     AnnotationKeys,
		"openyurt.io/topologyKeys":      AnnotationKeys,
		"topology-policy":               AnnotationPolicy,
		"superedge.io/topologyPolicy":   AnnotationPolicy,
		"superegde.io/topology-policy":  AnnotationPolicy,
		"superedge.io/ipvs-schedular":   AnnotationScheduler,
		"x.superedge.io/ipvs_scheduler": AnnotationScheduler,

		AnnotationKeys:                                       "",
		"topology":                                           "",
		"SUPEREDGE.IO/topology-policy":                       AnnotationPolicy,
		"example.com/topology-policy":                        "",
		"service.kubernetes.io/topology-mode":                "",
		"service.kubernetes.io/topology-aware-hints":         "",
		"superedge.io/grid-key":                              "",
		"kubectl.kubernetes.io/last-applied-configuration":   "",
		strings.Repeat("x", nameLengthMax) + "/topologykeys": "",
	} {
		found, meant := Misnamed(map[string]string{name: "[]", "app": "web"}, ServiceAnnotations())
		if meant != want || (found == name) != (want != "") {
			t.Errorf("%q is taken for %q (%q), want %q", name, meant, found, want)
		}
	}
}

// TestMisnamedShort: a short name without its prefix may be about anything.
func TestMisnamedShort(t *testing.T) {
	const paused = "superedge.io/paused"
	for name, want := range map[string]string{"pause": "", "form": "", "paused": paused, "superedge.io/pause": paused, "example.com/paused": ""} {
		if _, meant := Misnamed(map[string]string{name: ""}, []string{paused, "superedge.io/from"}); meant != want {
			t.Errorf("%s is taken for %q, want %q", name, meant, want)
		}
	}
}

// TestMisnamedBesideRead: a Service that has the right annotation has not mistyped it.
func TestMisnamedBesideRead(t *testing.T) {
	both := map[string]string{AnnotationKeys: `["zone"]`, "openyurt.io/topologyKeys": "zone"}
	if name, meant := Misnamed(both, ServiceAnnotations()); name != "" {
		t.Errorf("%s is taken for %s", name, meant)
	}
	delete(both, AnnotationKeys)
	both["topologykeys"] = `["zone"]` // a name for another program must not hide this one
	if name, meant := Misnamed(both, ServiceAnnotations()); name != "topologykeys" || meant != AnnotationKeys {
		t.Errorf("%s is taken for %s", name, meant)
	}
	both[AnnotationKeys], both["topologyPolicy"] = `["zone"]`, "Ordered"
	if name, meant := Misnamed(both, ServiceAnnotations()); name != "topologyPolicy" || meant != AnnotationPolicy {
		t.Errorf("%s is taken for %s", name, meant)
	}
}

// TestMisnamedIsBounded: an object with very many annotations is not looked at.
func TestMisnamedIsBounded(t *testing.T) {
	many := map[string]string{"topologykeys": ""}
	for i := range annotationsMax - 1 {
		many[fmt.Sprintf("a%d", i)] = ""
	}
	if name, _ := Misnamed(many, ServiceAnnotations()); name == "" {
		t.Error("nothing is found among 100 annotations")
	}
	many["another"] = ""
	if name, _ := Misnamed(many, ServiceAnnotations()); name != "" {
		t.Errorf("%s is found among 101 annotations", name)
	}
}
