package gridcases

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

//go:embed cases.yaml
var table []byte

// Case is one Grid.
type Case struct {
	Name     string          `json:"name"`
	Workload bool            `json:"workload"` // not for a ServiceGrid, which has none of these fields
	Spec     json.RawMessage `json:"spec"`     // absent: the Grid has none
	Field    string          `json:"field"`    // what Validate's error names
	Message  string          `json:"message"`  // of Validate, and of the server unless there is Server; "": accepted
	Server   string          `json:"server"`

	Kind string `json:"-"`
}

// Read returns each case of the table once for each kind that it is for.
func Read(t testing.TB) []Case {
	t.Helper()
	var read, all []Case
	if err := yaml.UnmarshalStrict(repeat(table), &read); err != nil {
		t.Fatalf("reading the cases: %v", err)
	}
	for _, c := range read {
		for _, kind := range []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid"} {
			if c.Kind = kind; kind != "ServiceGrid" || !c.Workload {
				all = append(all, c)
			}
		}
	}
	return all
}

// Refusal returns the message with which the API server refuses the Grid; "" if it accepts the
// Grid.
func (c Case) Refusal() string { return cmp.Or(c.Server, c.Message) }

// Object returns the Grid as JSON. Its name is grid, and its namespace default.
func (c Case) Object(t testing.TB) []byte {
	t.Helper()
	object := map[string]any{
		"apiVersion": "superedge.io/v1", "kind": c.Kind,
		"metadata": map[string]string{"name": "grid", "namespace": "default"},
	}
	if c.Spec != nil {
		object["spec"] = c.Spec
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatalf("writing the Grid: %v", err)
	}
	return text
}

// repeat spells {3*ab} out as ababab.
func repeat(text []byte) []byte {
	braces := regexp.MustCompile(`\{(\d+)\*([^}]+)\}`)
	return braces.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := braces.FindSubmatch(found)
		n, _ := strconv.Atoi(string(parts[1])) // digits, by the expression
		return []byte(strings.Repeat(string(parts[2]), n))
	})
}
