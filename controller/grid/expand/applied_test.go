package expand

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// TestRestart: a controller that starts applies nothing that is still as it was applied, and
// everything else.
func TestRestart(t *testing.T) {
	for _, kind := range []Kind{DeploymentGrid, StatefulSetGrid} {
		c := newCluster(t, "a", "b", "c")
		c.grid.Kind = kind
		c.expect(applies("a b c")...)
		restart := func() { c.restart(); c.memo = &Memo{} }
		restart()
		c.expect()

		restart() // while no controller ran, fields were taken
		c.seize("web-a", "spec", "replicas")
		c.seize("web-b", "metadata", "labels", v1.LabelFingerprint)
		c.expect(applies("a b")...)

		restart() // the Grid was edited
		c.grid.Template = withReplicas(9)
		c.expect(applies("a b c")...)

		restart() // an older controller, which wrote no fingerprint, has applied
		c.seize("web-a", "metadata", "labels", v1.LabelFingerprint)
		c.objects["web-a"].Fingerprint = ""
		c.expect("apply web-a")

		restart() // fields of another field manager were made ours, and not applied yet
		c.objects["web-a"].Owned = strings.Replace(c.objects["web-a"].Owned, `"f:spec":{`, `"f:spec":{"f:paused":{},`, 1)
		c.touch(c.objects["web-a"])
		c.expect("apply web-a")

		restart() // a copy of a child, with all its labels
		c.objects["web-a"].Owned = ""
		c.touch(c.objects["web-a"])
		c.expect("apply web-a")
	}
}

// TestRestartOfService: a Service has no fingerprint, so it is applied once.
func TestRestartOfService(t *testing.T) {
	c := newServices(t)
	c.expect("apply web-svc")
	child := c.objects["web-svc"]
	check(t, "fingerprint", child.Fingerprint, "")
	c.restart()
	c.memo = &Memo{}
	c.expect("apply web-svc")
}

// richTemplate has every kind of list that an API server knows: maps with one key and with several,
// some of them missing, sets, lists that are owned as a whole, and items that are.
const richTemplate = `{"replicas": 2, "paused": false, "selector": {"matchLabels": {"app": "echo"},
	"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
	"template": {"metadata": {"creationTimestamp": null, "labels": {"app": "echo"}, "annotations": {}, "finalizers": ["a.b/c", "d.e/f"]}, "spec": {
		"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a", "b"]}], "tolerations": [{"operator": "Exists"}, {"key": "a"}],
		"imagePullSecrets": [{"name": "x"}], "nodeSelector": {"disk": "ssd"}, "securityContext": {}, "priority": null,
		"topologySpreadConstraints": [
			{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "echo"}}},
			{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
		"volumes": [{"name": "none", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}],
		"containers": [
			{"name": "dns", "image": "echo:1", "args": ["a", "b"], "command": [], "resources": {"limits": {"cpu": "1"}},
				"ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "SCTP"}, {"containerPort": 80, "protocol": "TCP", "name": "http"}],
				"env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
				"volumeMounts": [{"name": "c", "mountPath": "/c"}], "volumeDevices": [{"name": "d", "devicePath": "/d"}]},
			{"name": "side", "image": "echo:2", "ports": [{"containerPort": 53}]}]}}}`

// TestOwnsExactly: the schema of the API knows which fields an apply makes ours. Nothing is missed
// of them, and nothing else counts.
func TestOwnsExactly(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	schema := applyconfigurations.NewTypeConverter(scheme)
	rapid.Check(t, func(t *rapid.T) {
		g := Grid{Spec: gridspec.Spec{Key: "a.b/zone"}, Namespace: "default", Name: "web", UID: "web-uid", Labels: map[string]string{"team": "shop"}}
		g.Kind = rapid.SampledFrom([]Kind{DeploymentGrid, StatefulSetGrid}).Draw(t, "kind")
		template := richTemplate
		if g.Kind == StatefulSetGrid {
			template = strings.Replace(template, `"paused": false`, `"volumeClaimTemplates": [{"metadata": {"name": "d"}}]`, 1)
			template = strings.Replace(template, `"strategy": {"rollingUpdate": {"maxSurge": "25%"}}`, `"ordinals": {"start": 1}`, 1)
		}
		g.Template = thinned(t, template)
		hash := rapid.SampledFrom([]string{"", "1234"}).Draw(t, "hash of the template")
		child := Children(g, []string{"a"}, nil)[0]
		if child.Problem != nil {
			t.Skip(child.Problem.Message)
		}
		o := WithFingerprint(child, "print")
		if hash != "" && rapid.Bool().Draw(t, "the hash is applied") {
			o = WithTemplateHash(o, hash)
		}
		typed, err := schema.ObjectToTyped(o)
		if err != nil {
			t.Skip(err) // two items with the same key, which the API server refuses
		}
		fields, err := typed.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		fields = fields.Difference(fieldpath.NewSet(
			fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
			fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
		))
		exactly := func(s *fieldpath.Set) bool {
			raw, err := s.ToJSON()
			if err != nil {
				t.Fatal(err)
			}
			return ownsExactly(string(raw), child, "print", hash)
		}
		if !exactly(fields) {
			t.Fatalf("not recognised: %s\nof %s", fields, g.Template)
		}
		var all []fieldpath.Path
		for p := range fields.All() {
			if mayGo(p) {
				all = append(all, p.Copy())
			}
		}
		one := rapid.SampledFrom(all).Draw(t, "field")
		if exactly(fields.Difference(fieldpath.NewSet(one))) {
			t.Fatalf("another writer has taken %s unnoticed", one)
		}
		others := fieldpath.NewSet() // as many fields as are below one
		for p := range fields.All() {
			if !p.Equals(one) && !strings.HasPrefix(p.String(), one.String()) {
				others.Insert(p.Copy())
				continue
			}
			others.Insert(fieldpath.MakePathOrDie("spec", p.String()))
		}
		if exactly(others) {
			t.Fatalf("other fields instead of %s are ours, unnoticed", one)
		}
		for _, other := range []fieldpath.Path{
			fieldpath.MakePathOrDie("spec", "added"), append(one.Copy(), fieldpath.FieldNameElement("added")), fieldpath.MakePathOrDie("status"),
		} {
			if exactly(fields.Union(fieldpath.NewSet(other))) {
				t.Fatalf("%s is ours too, unnoticed", other)
			}
		}
	})
}

// mayGo reports whether another writer may take a field alone. The key of an item goes with the
// item. SuperEdge's label may be missing.
func mayGo(p fieldpath.Path) bool {
	last := p[len(p)-1]
	if last.FieldName == nil {
		return true
	}
	if key := p[max(0, len(p)-2)].Key; key != nil && slices.ContainsFunc(*key, func(f value.Field) bool { return f.Name == *last.FieldName }) {
		return false
	}
	return *last.FieldName != v1.LabelTemplateHash
}

// thinned is a template without some of its optional fields.
func thinned(t *rapid.T, template string) []byte {
	var o map[string]any
	if err := json.Unmarshal([]byte(template), &o); err != nil {
		t.Fatal(err)
	}
	keep := map[string]bool{"selector": true, "template": true, "containers": true, "name": true, "labels": true, "matchLabels": true, "app": true, "ports": true,
		"metadata": true, "spec": true, "containerPort": true, "port": true, "key": true, "topologyKey": true, "whenUnsatisfiable": true, "ip": true, "mountPath": true, "devicePath": true}
	var thin func(any)
	thin = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if !keep[name] && rapid.IntRange(0, 3).Draw(t, name) == 0 {
					delete(v, name)
				}
				thin(v[name])
			}
		case []any:
			for _, item := range v {
				thin(item)
			}
		}
	}
	thin(o)
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
