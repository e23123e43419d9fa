package sites

import (
	"strings"
	"testing"
)

func nodeUnit(version, name, spec string) string {
	return `{"apiVersion": "site.superedge.io/` + version + `", "kind": "NodeUnit", "metadata": {"name": "` + name + `"}, "spec": ` + spec + `}`
}

func nodeGroup(version, name, spec string) string {
	return `{"apiVersion": "site.superedge.io/` + version + `", "kind": "NodeGroup", "metadata": {"name": "` + name + `"}, "spec": ` + spec + `}`
}

// TestRefusals: what cannot work is refused by the API server, in either version, in words that name the field and the
// remedy.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", 64)
	refused := []struct{ object, says string }{
		{nodeUnit("V", long, `{}`), "metadata.name must have at most 63 characters, since it becomes a label key of Nodes: choose a shorter name"},
		{nodeGroup("V", long, `{}`), "metadata.name must have at most 63 characters"},
		{nodeUnit("V", "u", `{"setNode": {"labels": {"not good": "x"}}}`), "a key of setNode.labels must be a label key"},
		{nodeUnit("V", "u", `{"setnode": {"labels": {"`+long+`": "x"}}}`), "a key of setNode.labels must be a label key"},
		{nodeUnit("V", "u", `{"setNode": {"labels": {"a": "not good"}}}`), "a value of setNode.labels must be a label value"},
		{nodeUnit("V", "u", `{"setNode": {"labels": {"a": "`+long+`"}}}`), "spec.setNode.labels.a: Too long"},
		{nodeUnit("V", "u", `{"setNode": {"annotations": {"/a": "x"}}}`), "a key of setNode.annotations must be a name"},
		{nodeUnit("V", "u", `{"setNode": {"taints": [{"key": "a b", "effect": "NoSchedule"}]}}`), "the key of a taint must be a label key"},
		{nodeUnit("V", "u", `{"setNode": {"taints": [{"key": "a", "value": "-", "effect": "NoSchedule"}]}}`), "the value of a taint must be empty"},
		{nodeUnit("V", "u", `{"taints": [{"key": "a", "effect": "Never"}]}`), "the effect of a taint must be NoSchedule, PreferNoSchedule or NoExecute"},
		{nodeUnit("V", "u", `{"setNode": {"labels": {"a": "1"}}, "setnode": {"labels": {"a": "2"}}}`), "keep setNode and remove setnode"},
		{nodeGroup("V", "g", `{"nodeUnits": ["a"], "nodeunits": ["b"]}`), "keep nodeUnits and remove nodeunits"},
		{nodeGroup("V", "g", `{"autoFindNodeKeys": ["a"], "autofindnodekeys": ["b"]}`), "keep autoFindNodeKeys and remove autofindnodekeys"},
		{nodeGroup("V", "g", `{"autoFindNodeKeys": ["a b"]}`), "autoFindNodeKeys must be label keys"},
	}
	for _, r := range refused {
		for _, version := range []string{"v1alpha1", "v1alpha2"} {
			object := strings.Replace(r.object, "/V", "/"+version, 1)
			if _, problem := w.try(object, "create", "-f", "-"); !strings.Contains(problem, r.says) {
				t.Errorf("%s\n got: %q\nwant: %q", object, problem, r.says)
			}
		}
	}
}

// TestBothVersions: S-11, what is written in one version and spelling is read in both, without a webhook.
func TestBothVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	read := func(kind, name, path string) string {
		return w.kubectl("", "get", kind+".site.superedge.io", name, "-o", "jsonpath={"+path+"}")
	}
	for _, written := range []string{"v1alpha1", "v1alpha2"} {
		for _, spelling := range []string{"setnode", "setNode"} {
			name := written + "-" + strings.ToLower(spelling) + map[bool]string{true: "-old"}[spelling == "setnode"]
			// SuperEdge wrote any word as a type (S-08).
			w.kubectl(nodeUnit(written, name, `{"type": "unit-node-edge", "`+spelling+`": {"labels": {"a": "b"}}}`), "create", "-f", "-")
			for _, kind := range []string{"nodeunits.v1alpha1", "nodeunits.v1alpha2"} {
				if got := read(kind, name, ".spec."+spelling+".labels.a"); got != "b" {
					t.Errorf("%s read as %s: spec.%s.labels.a is %q, want b", name, kind, spelling, got)
				}
			}
		}
		for _, spelling := range []string{"nodeunits", "nodeUnits"} {
			name := written + map[bool]string{true: "-old"}[spelling == "nodeunits"]
			w.kubectl(nodeGroup(written, name, `{"`+spelling+`": ["a"], "workload": [{"name": "w", "type": "Pod", "selector": null}]}`), "create", "-f", "-")
			for _, kind := range []string{"nodegroups.v1alpha1", "nodegroups.v1alpha2"} {
				if got := read(kind, name, ".spec."+spelling+"[0]"); got != "a" {
					t.Errorf("%s read as %s: spec.%s is %q, want a", name, kind, spelling, got)
				}
			}
		}
	}
	// An object that was stored before there was a rule can still be edited, so that its finalizer can go: its status tells.
	w.kubectl("", "patch", "nodeunit", "v1alpha2-setnode", "--type=merge", "-p", `{"spec": {"autonomyLevel": "L4", "unitClusterInfo": {"storageType": "etcd"}}}`)
	if got := read("nodeunits.v1alpha1", "v1alpha2-setnode", ".spec.unitClusterInfo.storageType"); got != "etcd" {
		t.Errorf("a field of v1alpha2 is lost on the way through v1alpha1: %q", got)
	}
}
