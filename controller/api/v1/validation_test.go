package v1_test

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1/gridcases"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestValidate(t *testing.T) {
	for _, c := range gridcases.Read(t) {
		t.Run(c.Kind+" "+c.Name, func(t *testing.T) {
			errs := validate(t, c)
			switch {
			case c.Message == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs.ToAggregate())
			case c.Message != "" && len(errs) != 1:
				t.Errorf("got %d errors, want one: %v", len(errs), errs.ToAggregate())
			case c.Message != "" && (errs[0].Field != c.Field || !strings.HasSuffix(errs[0].Error(), c.Message)):
				t.Errorf("got  %v\nwant %s: … %s", errs[0], c.Field, c.Message)
			}
		})
	}
}

// TestValidateNamesAll: one answer has every fault, in the order of the fields.
func TestValidateNamesAll(t *testing.T) {
	g := v1.DeploymentGrid{Spec: v1.WorkloadGridSpec{
		Template:     &v1.Template{JSON: []byte(`{"replicas":-1}`)},
		TemplatePool: map[string]v1.Template{"b": {JSON: []byte(`{"replicas":-2}`)}, "a": {JSON: []byte(`7`)}},
	}}
	var fields []string
	for _, err := range g.Validate() {
		fields = append(fields, err.Field)
	}
	want := "spec.gridUniqKey spec.template.replicas spec.templatePool[a] spec.templatePool[b].replicas"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func validate(t *testing.T, c gridcases.Case) field.ErrorList {
	t.Helper()
	grid := map[string]interface{ Validate() field.ErrorList }{
		"DeploymentGrid": &v1.DeploymentGrid{}, "StatefulSetGrid": &v1.StatefulSetGrid{}, "ServiceGrid": &v1.ServiceGrid{},
	}[c.Kind]
	must(t, json.Unmarshal(c.Object(t), grid))
	return grid.Validate()
}
