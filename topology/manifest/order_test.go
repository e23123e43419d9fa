package manifest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// manifestsOf returns manifests of objects, a document each.
func manifestsOf(t rapid.TB, o Objects) (all []string) {
	add := func(version, kind string, object any) {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "apiVersion: "+version+"\nkind: "+kind+"\n"+string(text))
	}
	for _, svc := range o.Services {
		add("v1", "Service", svc)
	}
	for _, slice := range o.Slices {
		add("discovery.k8s.io/v1", "EndpointSlice", slice.Object())
	}
	for _, n := range o.Nodes {
		add("v1", "Node", n)
	}
	return all
}

// arrange puts documents in some order into one to three files, some of them into a List.
func arrange(t *rapid.T, documents []string) []parsed {
	files := make([][]string, rapid.IntRange(1, 3).Draw(t, "files"))
	for _, d := range rapid.Permutation(documents).Draw(t, "order") {
		i := rapid.IntRange(0, len(files)-1).Draw(t, "file")
		if rapid.IntRange(0, 3).Draw(t, "in a list") == 0 {
			d = "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSuffix(d, "\n"), "\n", "\n  ") + "\n"
		}
		files[i] = append(files[i], d)
	}
	var all []parsed
	for i, f := range files {
		all = append(all, new(options).parse(fmt.Sprintf("%d.yaml", i), []byte("---\n"+strings.Join(f, "---\n"))))
	}
	return all
}

// TestOrderOfDocuments: how objects are spread over files, and in which order, changes nothing; and
// what is read of a cluster that an API server has seen resolves as the cluster itself does.
func TestOrderOfDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		objects := Objects{Services: s.Services, Slices: s.Slices}
		for name, labels := range s.Nodes {
			objects.Nodes = append(objects.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		}
		documents := manifestsOf(t, objects)
		first, _, err := assemble(arrange(t, documents))
		if err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(documents, "---\n"))
		}
		second, _, err := assemble(arrange(t, documents))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("another order, another result:\n%s", diff)
		}
		if reused, changed := second.Reuse(first); changed || !samePointers(reused, first) {
			t.Fatal("equal objects are not taken for the same")
		}
		read := first.Snapshot(s.Node)
		read.LastKeys, read.Host = s.LastKeys, s.Host
		same := cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(topology.ServicePort{}, "Slices")}
		if diff := cmp.Diff(outcome(s), outcome(read), same); diff != "" {
			t.Fatalf("manifests resolve differently (-cluster +manifests):\n%s", diff)
		}
	})
}

// portOutcome is a port of a View with all that it leaves out.
type portOutcome struct {
	Port  topology.ServicePort
	Drops []topology.Drop
}

// outcome returns a View without the Services, which have their defaults now, and without this
// Node's own object.
func outcome(s topology.Snapshot) []portOutcome {
	var all []portOutcome
	view := topology.Resolve(s, topology.Config{})
	for _, p := range view.Ports {
		port := *p
		port.Service = nil
		all = append(all, portOutcome{port, view.Drops(p)})
	}
	return all
}

func samePointers(a, b Objects) bool {
	return slices.Equal(a.Services, b.Services) && slices.Equal(a.Slices, b.Slices) && slices.Equal(a.Nodes, b.Nodes)
}

// TestReuse: of two reads, exactly the objects that differ are others.
func TestReuse(t *testing.T) {
	service := func(name, ip string) string {
		return fmt.Sprintf("---\n{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {clusterIP: %s, ports: [{port: 80}]}}\n", name, ip)
	}
	read := func(texts ...string) Objects {
		o, _, err := assemble([]parsed{new(options).parse("a.yaml", []byte(strings.Join(texts, "")))})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	old := read(service("b", "10.0.0.2"), service("c", "10.0.0.3"), service("d", "10.0.0.4"))
	now, changed := read(service("a", "10.0.0.1"), service("b", "10.0.0.2"), service("c", "10.0.0.33")).Reuse(old)
	if !changed {
		t.Error("the change is not noticed")
	}
	if now.Services[1] != old.Services[0] {
		t.Error("b is another object")
	}
	if now.Services[2] == old.Services[1] || now.Services[2].Spec.ClusterIP != "10.0.0.33" {
		t.Error("c is the old object")
	}
	if _, changed := read(service("b", "10.0.0.2"), service("c", "10.0.0.3")).Reuse(old); !changed {
		t.Error("that d is gone is not noticed")
	}
}
