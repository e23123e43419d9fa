package grids

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1/gridcases"
	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// TestCRDs shares one API server, which nothing else writes to.
func TestCRDs(t *testing.T) {
	d := newDefinitions(t)
	t.Run("each case of the table", d.table)
	t.Run("templates of other kinds", d.incomplete)
	t.Run("templates are not pruned", d.templates)
	t.Run("the key cannot be removed", d.removal)
	t.Run("a status in the manifest does not help", d.smuggle)
	t.Run("columns", d.columns)
	t.Run("samples", d.samples)
	t.Run("stored without a key", d.stored) // last: it changes the CRDs for a while
}

// table: what is wrong is refused with a message that names the field and the remedy; what Validate accepts is accepted.
func (d *definitions) table(t *testing.T) {
	for _, c := range gridcases.Read(t) {
		t.Run(c.Kind+" "+c.Name, func(t *testing.T) {
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			_, err := d.of(c.Kind).Create(d.ctx, parse(t, c.Object(t)), dry)
			if c.Refusal() == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			} else if problem := refusedWith(err, c.Refusal()); problem != nil {
				t.Errorf("%s\nwant: %s", problem, c.Refusal())
			}
		})
	}
}

// incomplete: at creation the template in use has what SuperEdge's schema requires, wherever it is.
func (d *definitions) incomplete(t *testing.T) {
	deployment := map[string]any{"selector": map[string]any{}, "template": map[string]any{}}
	statefulSet := map[string]any{"selector": map[string]any{}, "template": map[string]any{}, "serviceName": "web-svc"}
	service := map[string]any{"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": int64(80)}}}
	pool := map[string]any{"whole": statefulSet, "odd": service}
	for _, c := range []struct {
		what, kind, want string
		spec             map[string]any
	}{
		{"a Deployment", "DeploymentGrid", "", map[string]any{"template": deployment}},
		{"a Service", "DeploymentGrid", v1.MessageDeployment, map[string]any{"template": service}},
		{"a Deployment", "StatefulSetGrid", v1.MessageStatefulSet, map[string]any{"template": deployment}},
		{"a StatefulSet", "StatefulSetGrid", "", map[string]any{"template": statefulSet}},
		{"a Service, as in a slip of SuperEdge's manual", "StatefulSetGrid", v1.MessageStatefulSet, map[string]any{"template": service}},
		{"the default in the pool", "StatefulSetGrid", "", map[string]any{"templatePool": pool, "defaultTemplateName": "whole"}},
		{"that beside another kind's", "StatefulSetGrid", "", map[string]any{"template": service, "templatePool": pool, "defaultTemplateName": "whole"}},
		{"the units' in the pool", "DeploymentGrid", "", map[string]any{"templatePool": pool, "templates": map[string]any{"beijing": "whole"}}},
		{"another kind's in the pool", "StatefulSetGrid", v1.MessageStatefulSet, map[string]any{"template": statefulSet, "templatePool": pool, "defaultTemplateName": "odd"}},
		{"none in use", "DeploymentGrid", v1.MessageDeployment, map[string]any{"templatePool": pool}},
		{"one called default", "DeploymentGrid", v1.MessageDeployment, map[string]any{"templatePool": map[string]any{"default": deployment}, "defaultTemplateName": "default"}},
		{"a Service", "ServiceGrid", "", map[string]any{"template": service}},
		{"a Deployment", "ServiceGrid", v1.MessageService, map[string]any{"template": deployment}},
		{"no ports", "ServiceGrid", v1.MessageService, map[string]any{"template": map[string]any{"ports": []any{}}}},
		{"headless", "ServiceGrid", "", map[string]any{"template": map[string]any{"clusterIP": "None"}}},
		{"an ExternalName", "ServiceGrid", "", map[string]any{"template": map[string]any{"type": "ExternalName", "externalName": "example.com"}}},
	} {
		c.spec["gridUniqKey"] = "location"
		err := d.create(c.kind, c.spec)
		if c.want == "" && err != nil {
			t.Errorf("%s of %s: %v", c.kind, c.what, err)
		} else if problem := refusedWith(err, c.want); c.want != "" && problem != nil {
			t.Errorf("%s of %s: %s\nwant: %s", c.kind, c.what, problem, c.want)
		}
	}
}

// whole returns a template that has what the children of all kinds need.
func whole() map[string]any {
	return map[string]any{
		"selector": map[string]any{}, "template": map[string]any{}, "serviceName": "web-svc", "ports": []any{map[string]any{"port": int64(80)}},
	}
}

// templates: fields that no schema of ours knows come back as they were sent, nulls and empty values too.
func (d *definitions) templates(t *testing.T) {
	template := func() map[string]any {
		return map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{}}, "serviceName": "", "ports": []any{map[string]any{"port": int64(80), "unheardOf": true}},
			"strategy": map[string]any{}, "creationTimestamp": nil, "newest": []any{map[string]any{"field": int64(9007199254740993)}},
			"template": map[string]any{
				"metadata": map[string]any{"creationTimestamp": nil},
				"spec": map[string]any{
					"initContainers": []any{map[string]any{"name": "sidecar", "restartPolicy": "Always", "resizePolicy": []any{}}},
					"unheardOf":      map[string]any{"deep": map[string]any{"deeper": true, "empty": ""}},
				},
			},
		}
	}
	for _, kind := range []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid"} {
		spec := map[string]any{"gridUniqKey": "location", "template": template()}
		if kind != "ServiceGrid" {
			spec["templatePool"] = map[string]any{"canary": template()}
		}
		made, err := d.of(kind).Create(d.ctx, newGrid(kind, spec), metav1.CreateOptions{FieldValidation: "Strict"})
		must(t, err)
		if diff := cmp.Diff(spec, made.Object["spec"]); diff != "" {
			t.Errorf("%s (-sent +kept)\n%s", kind, diff)
		}
		d.remove(t, kind, "grid")
	}
}

func (d *definitions) removal(t *testing.T) {
	for _, kind := range []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid"} {
		if _, err := d.of(kind).Create(d.ctx, newGrid(kind, map[string]any{"gridUniqKey": "location", "template": whole()}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, patch := range []string{`{"spec":{"gridUniqKey":null}}`, `{"spec":{"gridUniqKey":""}}`, `{"spec":null}`} {
			for _, status := range []string{"before there is a status", "after"} {
				if problem := refusedWith(d.patch(kind, "grid", patch), v1.MessageKeyMissing); problem != nil {
					t.Errorf("%s, %s, %s: %s", kind, patch, status, problem)
				}
				if err := d.patch(kind, "grid", `{"status":{"observedGeneration":1}}`, "status"); err != nil {
					t.Errorf("writing the status: %v", err)
				}
			}
		}
		if err := d.patch(kind, "grid", `{"spec":{"gridUniqKey":"zone"}}`); err != nil {
			t.Errorf("nothing is immutable, but the key is: %v", err)
		}
		d.remove(t, kind, "grid")
	}
}

// smuggle: a manifest that holds a status, as what kubectl get prints does, is refused without a key like any other.
func (d *definitions) smuggle(t *testing.T) {
	for _, kind := range []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid"} {
		g := newGrid(kind, map[string]any{"template": map[string]any{}})
		g.Object["status"] = map[string]any{"observedGeneration": int64(1)}
		_, err := d.of(kind).Create(d.ctx, g, metav1.CreateOptions{})
		if problem := refusedWith(err, v1.MessageKeyMissing); problem != nil {
			t.Errorf("%s created: %s", kind, problem)
		}
		_, err = d.of(kind).Apply(d.ctx, "grid", g, metav1.ApplyOptions{FieldManager: "test"})
		if problem := refusedWith(err, v1.MessageKeyMissing); problem != nil {
			t.Errorf("%s applied: %s", kind, problem)
		}
	}
}

// columns: what kubectl get prints of a status that the Go types write. The status is a subresource of each Grid (B-01:
// SuperEdge's definitions have none, so that it writes no status).
func (d *definitions) columns(t *testing.T) {
	status := v1.WorkloadGridStatus{
		GridStatus: v1.GridStatus{ObservedGeneration: 1}, UnitNumber: 2, ReadyRate: "1/2", OfflineUnits: 1,
		Units: []v1.UnitStatus{{Value: "guangzhou", Phase: v1.UnitFailed, Nodes: 3}, {Value: "beijing", Phase: v1.UnitReady}},
	}
	states := map[string]v1.State{"beijing": {JSON: []byte(`{"replicas":2,"readyReplicas":2,"conditions":[{"type":"Available"}]}`)}}
	lb := v1.State{JSON: []byte(`{"ingress":[{"ip":"192.0.2.7","unheardOf":{}}]}`)}
	statuses := map[string]any{
		"DeploymentGrid":  &v1.DeploymentGrid{Status: v1.DeploymentGridStatus{WorkloadGridStatus: status, States: states}},
		"StatefulSetGrid": &v1.StatefulSetGrid{Status: v1.StatefulSetGridStatus{WorkloadGridStatus: status, States: states}},
		"ServiceGrid":     &v1.ServiceGrid{Status: v1.ServiceGridStatus{Service: "grid-svc", ClusterIP: "10.96.7.7", LoadBalancer: &lb}},
	}
	for kind, typed := range statuses {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		must(t, err)
		made, err := d.of(kind).Create(d.ctx, newGrid(kind, map[string]any{"gridUniqKey": "location", "template": whole()}), metav1.CreateOptions{})
		must(t, err)
		made.Object["status"] = u["status"]
		kept, err := d.of(kind).UpdateStatus(d.ctx, made, metav1.UpdateOptions{FieldValidation: "Strict"})
		must(t, err)
		if diff := cmp.Diff(u["status"], kept.Object["status"]); diff != "" {
			t.Errorf("%s's status (-sent +kept)\n%s", kind, diff)
		}
		defer d.remove(t, kind, "grid")
	}
	for short, want := range map[string]string{
		"dg":  "NAME   KEY        UNITS   READY   OFFLINE   AGE\ngrid   location   2       1/2     1         AGE\n",
		"ssg": "NAME   KEY        UNITS   READY   OFFLINE   AGE\ngrid   location   2       1/2     1         AGE\n",
		"sg":  "NAME   KEY        SERVICE    CLUSTER-IP   AGE\ngrid   location   grid-svc   10.96.7.7    AGE\n",
	} {
		got := regexp.MustCompile(`\S+\n$`).ReplaceAllString(d.kubectl(t, "get", short), "AGE\n")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("kubectl get %s (-want +got)\n%s", short, diff)
		}
	}
}

// samples: each folder is applied as a whole; its Grids are kept as they are written, and Validate has nothing to say of
// them.
func (d *definitions) samples(t *testing.T) {
	folders, err := filepath.Glob("../../deploy/samples/*")
	if err != nil || len(folders) < 4 {
		t.Fatalf("found %d folders: %v", len(folders), err)
	}
	for _, folder := range folders {
		if filepath.Base(folder) == "site" {
			continue // a whole cluster as gridproxy reads it, with cluster IPs outside of this one's range
		}
		d.kubectl(t, "apply", "--server-side", "--validate=strict", "-f", folder)
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		must(t, err)
		for _, file := range files {
			sample := readYAML(t, file)
			if sample.GetAPIVersion() != v1.GroupVersion().String() {
				continue // another package's
			}
			kept, err := d.of(sample.GetKind()).Get(d.ctx, sample.GetName(), metav1.GetOptions{})
			must(t, err)
			if diff := cmp.Diff(sample.Object["spec"], kept.Object["spec"]); diff != "" {
				t.Errorf("%s (-file +kept)\n%s", file, diff)
			}
			if errs := typed(t, kept).Validate(); len(errs) > 0 {
				t.Errorf("%s: %v", file, errs.ToAggregate())
			}
		}
		d.kubectl(t, "delete", "-f", folder)
	}
}

// stored: a Grid that was stored without a key and with an empty template, as SuperEdge lets one
// be, can be edited, before and after it has a status.
func (d *definitions) stored(t *testing.T) {
	kinds := []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid"}
	d.relax(t)
	for _, kind := range kinds {
		wait.Until(t, "the rules are gone", func() error { return d.create(kind, map[string]any{}) })
		for _, name := range []string{"old", "older"} {
			g := newGrid(kind, map[string]any{"template": map[string]any{}})
			g.SetName(name)
			if _, err := d.of(kind).Create(d.ctx, g, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.install(t)
	for _, kind := range kinds {
		for _, patch := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"template":{"x":1}}}`, `{"spec":{"gridUniqKey":"zone"}}`} {
			if err := d.patch(kind, "older", patch); err != nil {
				t.Errorf("editing a %s without a status by %s: %v", kind, patch, err)
			}
		}
		if err := d.patch(kind, "old", `{"status":{"observedGeneration":1}}`, "status"); err != nil {
			t.Errorf("writing the status of a %s: %v", kind, err)
		}
		for _, patch := range []string{
			`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"template":{"x":1}}}`, `{"spec":null}`, `{"spec":{"gridUniqKey":""}}`,
			`{"spec":{"gridUniqKey":"zone"}}`,
		} {
			if err := d.patch(kind, "old", patch); err != nil {
				t.Errorf("editing a %s by %s: %v", kind, patch, err)
			}
		}
		d.remove(t, kind, "old")
		d.remove(t, kind, "older")
	}
}

// relax takes all rules out of the Grids' CRDs, which are then what SuperEdge's are.
func (d *definitions) relax(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crds, "superedge.io_*.yaml"))
	must(t, err)
	for _, file := range files {
		crd := readYAML(t, file)
		withoutRules(crd.Object)
		resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		live, err := d.client.Resource(resource).Get(d.ctx, crd.GetName(), metav1.GetOptions{})
		must(t, err)
		live.Object["spec"] = crd.Object["spec"]
		if _, err := d.client.Resource(resource).Update(d.ctx, live, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func withoutRules(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "x-kubernetes-validations")
		for _, inner := range v {
			withoutRules(inner)
		}
	case []any:
		for _, inner := range v {
			withoutRules(inner)
		}
	}
}

func (d *definitions) remove(t *testing.T, kind, name string) {
	t.Helper()
	if err := d.of(kind).Delete(d.ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func readYAML(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return parse(t, asJSON)
}

// typed is a Grid as the controller reads it.
func typed(t *testing.T, u *unstructured.Unstructured) (grid interface{ Validate() field.ErrorList }) {
	t.Helper()
	switch strings.TrimSuffix(u.GetKind(), "Grid") {
	case "Deployment":
		grid = &v1.DeploymentGrid{}
	case "StatefulSet":
		grid = &v1.StatefulSetGrid{}
	default:
		grid = &v1.ServiceGrid{}
	}
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, grid))
	return grid
}
