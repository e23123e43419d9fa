package expand

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

// TestChildren: each file of testdata/children holds a Grid, the values of Nodes, and the children
// or problems that are to come of them. With UPDATE=1 the last are written.
func TestChildren(t *testing.T) {
	files, err := filepath.Glob("testdata/children/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			g := readGrid(t, a.Files[0].Data)
			got := childrenText(t, Children(g, strings.Fields(string(a.Files[1].Data)), nil))
			if d := cmp.Diff(readGrid(t, a.Files[0].Data), g); d != "" {
				t.Errorf("the Grid is not what it was (B-03, B-04):\n%s", d)
			}
			if os.Getenv("UPDATE") != "" {
				a.Files[2].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := diff.Diff("want", a.Files[2].Data, "got", []byte(got)); len(d) > 0 {
				t.Errorf("children differ:\n%s", d)
			}
		})
	}
}

// TestChildrenInheritNoPruningLabels: a child that carried the mark of a tool would be deleted by
// the tool, because no source has it.
func TestChildrenInheritNoPruningLabels(t *testing.T) {
	marks := []string{
		"applyset.kubernetes.io/part-of", "objectset.rio.cattle.io/hash", "argocd.argoproj.io/instance",
		"kapp.k14s.io/app", "kustomize.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/name",
	}
	g := Grid{Spec: gridspec.Spec{Kind: DeploymentGrid, Key: "zone", Template: []byte(deployment)}, Name: "web", Labels: map[string]string{"team": "edge"}}
	sg := Grid{Spec: gridspec.Spec{Kind: ServiceGrid, Key: "zone", Template: []byte(`{"ports": [{"port": 80}]}`)}, Name: "web",
		Labels: g.Labels, Annotations: map[string]string{"docs": "here"}}
	for _, mark := range marks {
		g.Labels[mark], sg.Annotations[mark] = "x", "x"
	}
	for _, c := range append(Children(g, []string{"a"}, nil), Children(sg, nil, nil)...) {
		labels, annotations := c.Object.GetLabels(), c.Object.GetAnnotations()
		for _, mark := range marks {
			if labels[mark] != "" || annotations[mark] != "" {
				t.Errorf("%s inherits %s", c.Name, mark)
			}
		}
		check(t, "other labels of "+c.Name, labels["team"], "edge")
	}
	check(t, "other annotations", Children(sg, nil, nil)[0].Object.GetAnnotations()["docs"], "here")
}

func readGrid(t *testing.T, text []byte) Grid {
	t.Helper()
	var kind struct {
		Kind Kind `json:"kind"`
	}
	unmarshal := func(into any) {
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	unmarshal(&kind)
	switch kind.Kind {
	case DeploymentGrid:
		var g v1.DeploymentGrid
		unmarshal(&g)
		return FromDeploymentGrid(&g)
	case StatefulSetGrid:
		var g v1.StatefulSetGrid
		unmarshal(&g)
		return FromStatefulSetGrid(&g)
	default:
		var g v1.ServiceGrid
		unmarshal(&g)
		return FromServiceGrid(&g)
	}
}

func childrenText(t *testing.T, all []Child) string {
	t.Helper()
	var text strings.Builder
	for _, c := range all {
		if c.Problem != nil {
			text.WriteString("# " + c.Value + ": " + c.Problem.Reason + ": " + c.Problem.Message + "\n")
			continue
		}
		out, err := yaml.Marshal(c.Object.Object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(out))
	}
	return text.String()
}

// TestUnitSelector: the opt-in is for children that are made; one that exists keeps the form of its
// selector.
func TestUnitSelector(t *testing.T) {
	for _, test := range []struct {
		name, annotation string
		live             *Live
		want             bool
	}{
		{"not asked for", "", nil, false},
		{"asked for", "true", nil, true},
		{"another word", "yes", nil, false},
		{"asked for, but it stands", "true", &Live{Selects: MakePairs(map[string]string{"appGrid": "echo"})}, false},
		{"no longer asked for, but it stands", "", &Live{Selects: MakePairs(map[string]string{v1.LabelUnit: "Zone_1"})}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := newCluster(t).grid
			g.Annotations[v1.AnnotationUnitSelector] = test.annotation
			c := Children(g, []string{"Zone_1"}, map[string]*Live{g.childName("Zone_1"): test.live})[0]
			want := ""
			if test.want {
				want = "Zone_1"
			}
			spec := c.Object.Object["spec"].(map[string]any)
			check(t, "selector", textAt(spec, "selector", "matchLabels")[v1.LabelUnit], want)
			check(t, "Pods", textAt(spec, "template", "metadata", "labels")[v1.LabelUnit], want)
			check(t, "Pods", textAt(spec, "template", "metadata", "labels")["appGrid"], "echo")
		})
	}
}

// TestFingerprint is the same for the same wish, however it is written (B-10), and another for
// another.
func TestFingerprint(t *testing.T) {
	g := newCluster(t).grid
	print := func(template string) string {
		g.Template = []byte(template)
		return Fingerprint(Children(g, []string{"a"}, nil)[0])
	}
	first := print(deployment)
	check(t, "with a null", print(`{"paused": null, `+deployment[1:]), first)
	moved := strings.Replace(deployment[1:len(deployment)-1], `"replicas": 2,`, "", 1)
	check(t, "another order", print("{"+moved+`, "replicas": 2}`), first)
	if print(strings.Replace(deployment, "echo:1", "echo:2", 1)) == first {
		t.Error("another image has the same fingerprint")
	}
	check(t, "a problem's", print(`[]`), "")
}

// TestOwnedFingerprint does not depend on who wrote the JSON.
func TestOwnedFingerprint(t *testing.T) {
	a := OwnedFingerprint(`{"f:spec":{"f:template":{},"f:replicas":{}}}`)
	check(t, "another order", OwnedFingerprint(`{"f:spec": {"f:replicas": {}, "f:template": {}}}`), a)
	if OwnedFingerprint(`{"f:spec":{"f:template":{}}}`) == a {
		t.Error("a field less has the same fingerprint")
	}
	check(t, "none", OwnedFingerprint(""), "")
}
