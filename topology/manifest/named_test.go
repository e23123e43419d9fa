package manifest

import (
	"fmt"
	"strings"
	"testing"

	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

const namedText = `
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}, spec: {clusterIP: None}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
 metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db, service.kubernetes.io/headless: ""}},
 endpoints: [{addresses: [10.0.0.1], hostname: db-0}]}
---
{apiVersion: superedge.io/v1, kind: StatefulSetGridList, items: [{metadata: {name: db, namespace: grids}, spec: {odd: 1}}]}
`

func readNamed(t *testing.T, text string) (Objects, error) {
	t.Helper()
	o, _, err := NewReader([]string{Stdin}, strings.NewReader(text)).WithNames().Read()
	return o, err
}

// TestReadNames: with names, what DNS reads is there. Namespaces are those of the objects
// and those that have an object of their own.
func TestReadNames(t *testing.T) {
	const namespace = "---\n{apiVersion: v1, kind: Namespace, metadata: {name: only}}\n"
	for more, want := range map[string]string{"": "[grids shop]", namespace: "[grids only shop]"} {
		o, err := readNamed(t, namedText+more)
		if err != nil {
			t.Fatal(err)
		}
		s := o.Snapshot("n1")
		if got := fmt.Sprint(s.Namespaces); got != want || len(s.Grids) != 1 || s.Grids[0] != (types.NamespacedName{Namespace: "grids", Name: "db"}) {
			t.Errorf("Namespaces %s, Grids %v; want %s, grids/db", got, s.Grids, want)
		}
		if names := topology.ResolveDNS(s, topology.Config{}).Services[0]; len(names.Endpoints) != 1 || names.Endpoints[0].Hostname != "db-0" {
			t.Errorf("names %+v, want db-0", names)
		}
		again, err := readNamed(t, namedText+more)
		if err != nil {
			t.Fatal(err)
		}
		if same, changed := again.Reuse(o); changed || &same.Namespaces[0] != &o.Namespaces[0] {
			t.Error("a second read gives other lists")
		}
		if other, changed := o.Reuse(Objects{Services: o.Services, Slices: o.Slices}); !changed || other.Namespaces == nil {
			t.Error("that names were read is no change")
		}
	}
	o, _, err := Read([]string{Stdin}, strings.NewReader(namedText+namespace))
	if err != nil || o.Namespaces != nil || o.Grids != nil || len(o.Slices[0].Endpoints) != 0 {
		t.Errorf("without names: %+v, %v", o, err)
	}
	o, err = readNamed(t, "{apiVersion: v1, kind: NamespaceList, items: []}")
	if same, changed := o.Reuse(Objects{}); err != nil || !changed || same.Namespaces == nil {
		t.Errorf("with names and no object, Namespaces are nil or no change: %+v, %v", same, err)
	}
}

// TestBadNames: what is wrong with a name is an error, as for every kind.
func TestBadNames(t *testing.T) {
	for text, want := range map[string]string{
		`{apiVersion: v1, kind: Namespace, metadata: {name: a.b}}`:                                "metadata.name",
		`{apiVersion: v1, kind: Namespace, metadata: {}}`:                                         "metadata.name: is missing",
		`{apiVersion: superedge.io/v1beta1, kind: StatefulSetGrid, metadata: {name: a}}`:          "the only version that is read",
		strings.Repeat("---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n", 2):        "is taken by",
		`{apiVersion: superedge.io/v1, kind: StatefulSetGrid, metadata: {name: a, namespace: 1}}`: "metadata.namespace",
	} {
		if _, err := readNamed(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
