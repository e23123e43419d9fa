package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestReadWith: one read gives the objects of the used kinds and of further ones, and counts the
// rest, in lists too.
func TestReadWith(t *testing.T) {
	const text = `
{apiVersion: v1, kind: Node, metadata: {name: bj-1}}
---
{apiVersion: example.com/v1, kind: Odd, metadata: {name: a, namespace: shop}}
---
{apiVersion: example.com/v1, kind: OddList, items: [{metadata: {name: b}}]}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}, {apiVersion: example.com/v1, kind: Odd, metadata: {name: d}}]}
---
{apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: e}}, {metadata: {name: f}}]}
---
{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: g}}
---
{apiVersion: example.com/v1, kind: AllowList, metadata: {name: h}}
---
{apiVersion: v1, kind: SecretList, items: []}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: web}}
`
	odd := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Odd"}
	c, _, err := ReadWith([]string{Stdin}, strings.NewReader(text), odd)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range c.Further {
		got = append(got, r.Place)
	}
	if diff := cmp.Diff([]string{
		"standard input: document 2 (Odd shop/a)", "standard input: document 3, item 1 (Odd b)", "standard input: document 4, item 2 (Odd d)",
	}, got); diff != "" || len(c.Nodes) != 1 {
		t.Errorf("%d Nodes, further objects (-want +got):\n%s", len(c.Nodes), diff)
	}
	if diff := cmp.Diff(map[schema.GroupKind]int{
		{Kind: "ConfigMap"}: 3, {Kind: "Endpoints"}: 1, {Group: "serving.knative.dev", Kind: "Service"}: 1, {Group: "example.com", Kind: "AllowList"}: 1,
	}, c.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

// TestUnreadAPIProxy: SuperEdge's annotation on the Endpoints of the API server, in any list, is a
// warning, unless an EndpointSlice names the proxy too.
func TestUnreadAPIProxy(t *testing.T) {
	const (
		annotated = `metadata: {name: kubernetes, annotations: {superedge.io/local-endpoint: 169.254.20.11, superedge.io/local-port: "51003"}`
		warning   = "annotation superedge.io/local-endpoint of Endpoints default/kubernetes is not read; " +
			"copy it and superedge.io/local-port to the EndpointSlice default/kubernetes, as docs/migrate-from-superedge.md says"
		slice = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: [], " + annotated +
			", labels: {kubernetes.io/service-name: kubernetes}}}"
	)
	for text, want := range map[string][]string{
		"{apiVersion: v1, kind: Endpoints, " + annotated + "}}":                                {"standard input: document 1 (Endpoints): " + warning},
		"{apiVersion: v1, kind: EndpointsList, items: [{metadata: {}}, {" + annotated + "}}]}": {"standard input: document 1, item 2: " + warning},
		"{apiVersion: v1, kind: Endpoints, " + annotated + ", namespace: shop}}":               nil,
		"{apiVersion: v1, kind: Endpoints, metadata: {name: kubernetes}}":                      nil,
		"{apiVersion: v1, kind: Endpoints, metadata: 7}":                                       nil,
		"{apiVersion: v1, kind: Endpoints, " + annotated + "}}\n---\n" + slice:                 nil,
	} {
		_, warnings, err := Read([]string{Stdin}, strings.NewReader(text))
		if diff := cmp.Diff(want, warnings); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// TestReadWithChecksFurtherKinds: an object of a further kind has a version that is read, and a
// name of its own.
func TestReadWithChecksFurtherKinds(t *testing.T) {
	odd := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Odd"}
	for text, want := range map[string]string{
		"{apiVersion: example.com/v2, kind: Odd, metadata: {name: a}}":                                                                                        "standard input: document 1 (Odd): apiVersion: is example.com/v2; write example.com/v1, the only version that is read",
		"{apiVersion: example.com/v1, kind: Odd, metadata: {name: a}}\n---\n{apiVersion: example.com/v1, kind: Odd, metadata: {name: a, namespace: default}}": "standard input: document 2 (Odd default/a): metadata.name: the name of Odd default/a is taken by standard input: document 1 (Odd a); change or remove one",
	} {
		if _, _, err := ReadWith([]string{Stdin}, strings.NewReader(text), odd); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
