package superedge

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"
	"gridproxy/topology"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// The kinds of sites in each version, as kubectl takes them.
const (
	units, groups       = "nodeunits.v1alpha2.site.superedge.io", "nodegroups.v1alpha2.site.superedge.io"
	oldUnits, oldGroups = "nodeunits.v1alpha1.site.superedge.io", "nodegroups.v1alpha1.site.superedge.io"
)

// sites are objects as SuperEdge's users have written them, each with the finalizers that site-manager adds. The first two
// are stored as v1alpha1, the third as v1alpha2.
const sites = `
apiVersion: site.superedge.io/v1alpha1
kind: NodeUnit
metadata: {name: beijing, finalizers: [site.superedge.io/nodeunit]}
spec: {nodes: [bj-1], setnode: {labels: {tier: edge}}}
---
apiVersion: site.superedge.io/v1alpha1
kind: NodeGroup
metadata: {name: location, finalizers: [site.superedge.io/finalizer]}
spec: {nodeunits: [beijing, guangzhou]}
`

const laterSites = `
apiVersion: site.superedge.io/v1alpha2
kind: NodeUnit
metadata: {name: guangzhou, finalizers: [site.superedge.io/nodeunit]}
spec: {nodes: [gz-1], setNode: {labels: {tier: edge}}}
`

// TestDefinitions moves SuperEdge's definitions over, of Grids without the status subresource and of sites with a webhook
// that does not answer, while grid-controller waits for it.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	superEdge, err := apiserver.EnsureSuperEdge(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := nodes.ForTest(t, nodes.Options{})
	w := &world{Cluster: c, t: t, whole: t, superEdge: superEdge, shell: newShell(t, c.Tools(), c.Admin())}
	w.AddNode(t, "bj-1", nil)
	w.AddNode(t, "gz-1", nil)
	w.installSites()
	w.MustKubectl(t, "create", "-f", superEdge.CRDs())

	ours := nodes.AsShipped()
	ours.Binary = w.shell.controller
	w.ours = w.GridController(t, ours)
	wait.Until(w.t, "grid-controller says what is wrong and how to repair it", func() error {
		for _, words := range []string{
			"deploymentgrids.superedge.io is not ours: version v1 has no status subresource", "servicegrids.superedge.io is not ours",
			"nodeunits.site.superedge.io is not ours: a webhook converts its versions", "grid-controller migrate-crds",
		} {
			if log := w.ours.Log(); !strings.Contains(log, words) {
				return fmt.Errorf("%q is not in:\n%s", words, log)
			}
		}
		return nil
	})

	before := w.get("crd", identity)
	t.Log(w.shell.follow(t, "Replace the definitions"))
	after := w.get("crd", identity)
	for line := range strings.Lines(before) { // those of a fleet of clusters, which SuperEdge has not, are new
		if !strings.Contains(after, line) {
			t.Errorf("the definitions were\n%sand are\n%s", before, after)
		}
	}
	w.repeated()
	w.proxyCopied()
	w.ours.WaitReady(t)
	w.readable()
	w.reconciled()
	w.deletable()
}

const identity = `{range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`

// installSites does what years of SuperEdge do: definitions with one version, objects, definitions with two, objects.
func (w *world) installSites() {
	w.t.Helper()
	w.MustKubectl(w.t, "create", "-f", "testdata/superedge-v1alpha1.yaml")
	w.WaitForDefinitions(w.t)
	w.Apply(w.t, sites)
	w.MustKubectl(w.t, "patch", oldUnits, "beijing", "--subresource=status", "--type=merge", "-p", `{"status": {"readyrate": "1/1", "readynodes": ["bj-1"]}}`)
	w.MustKubectl(w.t, "apply", "-f", "testdata/superedge-v1alpha2.yaml")
	wait.Until(w.t, "objects can be stored as v1alpha2", func() error {
		_, err := w.Kubectl("get", units, "beijing")
		return wait.Check(err != nil && strings.Contains(err.Error(), "conversion webhook"), "an object that is stored as v1alpha1 is read without the webhook: %w", err)
	})
	w.Apply(w.t, laterSites)
	for _, kind := range []string{"nodeunits", "nodegroups"} {
		if got := w.get("crd/"+kind+".site.superedge.io", "{.status.storedVersions}"); got != `["v1alpha1","v1alpha2"]` {
			w.t.Errorf("%s are stored as %s", kind, got)
		}
	}
}

// repeated: the second time nothing is left to do, and nothing is written.
func (w *world) repeated() {
	w.t.Helper()
	const versions = `{range .items[*]}{.metadata.name} {.metadata.resourceVersion} {.spec.conversion.strategy} {.status.storedVersions}{"\n"}{end}`
	before := w.get("crd", versions)
	if got := w.shell.Run(w.t, "grid-controller migrate-crds --kubeconfig ~/.kube/config"); strings.Count(got, "is ours already") != 5 ||
		strings.Count(got, "are stored as") != 5 || strings.Count(got, "\n") != 10 {
		w.t.Errorf("the second time it says:\n%s", got)
	}
	if after := w.get("crd", versions); after != before {
		w.t.Errorf("the definitions were\n%sand are\n%s", before, after)
	}
	for line := range strings.Lines(before) {
		want := `["v1"]`
		switch name, _, _ := strings.Cut(line, "."); {
		case strings.Contains(line, ".site."):
			want = `["v1alpha2"]`
		case slices.Contains([]string{"fleetclusters", "gridbundles", "gridreports"}, name):
			want = `["v1alpha1"]`
		}
		if !strings.HasSuffix(strings.TrimSpace(line), " None "+want) {
			w.t.Errorf("want conversion None and stored versions %s: %s", want, line)
		}
		name, _, _ := strings.Cut(line, " ")
		for _, m := range w.managers("crd/" + name) {
			if strings.HasSuffix(m, " Update ") {
				w.t.Errorf("%s would be in the way of the next kubectl apply --server-side of %s", m, name)
			}
		}
	}
}

// proxyCopied: the annotations of the node-local API proxy are where gridproxy reads them.
func (w *world) proxyCopied() {
	w.t.Helper()
	w.MustKubectl(w.t, "--namespace=default", "annotate", "endpoints", "kubernetes", "superedge.io/local-endpoint=169.254.20.11", "superedge.io/local-port=51003")
	w.t.Log(w.shell.follow(w.t, "Keep the node-local API proxy"))
	slice := &discoveryv1.EndpointSlice{}
	if err := json.Unmarshal([]byte(w.MustKubectl(w.t, "--namespace=default", "get", "endpointslice", "kubernetes", "--output=json")), slice); err != nil {
		w.t.Fatal(err)
	}
	want := []netip.AddrPort{netip.MustParseAddrPort("169.254.20.11:51003")}
	if got := topology.APIProxies([]*topology.Slice{topology.NewSlice(slice)}); !slices.Equal(got, want) {
		w.t.Errorf("the EndpointSlice names the API proxies %v, want %v: %v", got, want, slice.Annotations)
	}
}

// readable: every object is there in both versions, with what its user wrote.
func (w *world) readable() {
	w.t.Helper()
	for _, kind := range []string{units, oldUnits} {
		if got := w.get(kind+"/beijing", "{.spec.nodes} {.spec.setnode.labels.tier}"); got != `["bj-1"] edge` {
			w.t.Errorf("%s beijing has %q", kind, got)
		}
		if got := w.get(kind+"/guangzhou", "{.spec.nodes} {.spec.setNode.labels.tier}"); got != `["gz-1"] edge` {
			w.t.Errorf("%s guangzhou has %q", kind, got)
		}
	}
	for _, kind := range []string{groups, oldGroups} {
		if got := w.get(kind+"/location", "{.spec.nodeunits}"); got != `["beijing","guangzhou"]` {
			w.t.Errorf("%s location has %q", kind, got)
		}
	}
}

const labels = `{.metadata.labels.tier} {.metadata.labels.location} {.metadata.labels.beijing} {.metadata.labels.guangzhou}`

func (w *world) reconciled() {
	w.t.Helper()
	w.wants("node/bj-1", labels, "edge beijing nodeunits.superedge.io ")
	w.wants("node/gz-1", labels, "edge guangzhou  nodeunits.superedge.io")
	w.wants(units+"/beijing", "{.status.readyRate}", "1/1")
	w.wants(units+"/guangzhou", "{.status.readyRate}", "1/1")
	w.wants(groups+"/location", "{.status.unitNumber}", "2")
}

func (w *world) wants(what, path, want string) {
	w.t.Helper()
	wait.Until(w.t, what+" is reconciled", func() error {
		got := w.get(what, path)
		return wait.Check(got == want, "%s is %q, want %q", path, got, want)
	})
}

// deletable: SuperEdge's finalizers are removed when the Nodes are clean.
func (w *world) deletable() {
	w.t.Helper()
	w.MustKubectl(w.t, "delete", groups, "location", "--timeout=60s")
	w.MustKubectl(w.t, "delete", units, "beijing", "guangzhou", "--timeout=60s")
	w.wants("node/bj-1", labels, "   ")
	w.wants("node/gz-1", labels, "   ")
}
