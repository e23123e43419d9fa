package sites

import (
	"encoding/json"
	"strings"
	"testing"

	apijson "k8s.io/apimachinery/pkg/util/json"
)

// wireUnit is a NodeUnit as a typed client of SuperEdge writes it: a field that its version does
// not know is not there, and one that it knows always is.
type wireUnit struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
}

type oldUnit struct {
	wireUnit `json:",inline"`
	Spec     struct {
		Nodes   []string `json:"nodes,omitempty"`
		SetNode wireSet  `json:"setnode"`
	} `json:"spec"`
}

type newUnit struct {
	wireUnit `json:",inline"`
	Spec     struct {
		Nodes   []string `json:"nodes,omitempty"`
		SetNode wireSet  `json:"setNode"`
	} `json:"spec"`
}

type wireSet struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// TestLossyWrites: a typed client that reads a unit in one version, changes its Nodes and writes it
// back cannot remove what the other spelling of setNode says. An empty setNode removes it.
func TestLossyWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	read := func(version string, into any) {
		text := w.kubectl("", "get", "nodeunits."+version+".site.superedge.io", "u", "-o", "json")
		if err := apijson.Unmarshal([]byte(text), into); err != nil { // which tells setNode from setnode, as client-go does
			t.Fatal(err)
		}
	}
	replace := func(o any) string {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		_, problem := w.try(string(text), "replace", "-f", "-")
		return problem
	}
	labels := func(spelling string) string {
		return w.kubectl("", "get", "nodeunit", "u", "-o", "jsonpath={.spec."+spelling+".labels.a}")
	}

	w.kubectl(nodeUnit("v1alpha2", "u", `{"setNode": {"labels": {"a": "b"}}}`), "create", "-f", "-")
	var old oldUnit
	read("v1alpha1", &old)
	old.Spec.Nodes = []string{"n"}
	if problem := replace(old); !strings.Contains(problem, "setNode would be lost") || labels("setNode") != "b" {
		t.Errorf("a client of v1alpha1 has written: %q, and setNode says %q", problem, labels("setNode"))
	}
	var current newUnit
	read("v1alpha2", &current)
	current.Spec.Nodes = []string{"n"}
	if problem := replace(current); problem != "" || labels("setNode") != "b" {
		t.Errorf("a client of v1alpha2 could not write: %s", problem)
	}
	read("v1alpha2", &current)
	current.Spec.SetNode.Labels = nil
	if problem := replace(current); problem != "" || labels("setNode") != "" {
		t.Errorf("setNode could not be emptied: %s", problem)
	}
	read("v1alpha1", &old)
	old.Spec.SetNode.Labels = map[string]string{"a": "c"}
	if problem := replace(old); problem != "" || labels("setnode") != "c" {
		t.Errorf("a client of v1alpha1 could not write its own spelling: %s", problem)
	}

	current = newUnit{}
	read("v1alpha2", &current)
	if problem := replace(current); !strings.Contains(problem, "setnode would be lost") || labels("setnode") != "c" {
		t.Errorf("a client of v1alpha2 has written: %q, and setnode says %q", problem, labels("setnode"))
	}
	current.Spec.SetNode.Labels = map[string]string{"a": "d"}
	if problem := replace(current); problem != "" || labels("setNode") != "d" {
		t.Errorf("setnode could not be moved to setNode: %s", problem)
	}
}
