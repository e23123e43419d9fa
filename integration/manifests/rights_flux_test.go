package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/federation/archive"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var (
	artifacts      = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "externalartifacts"}
	kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
)

// TestFluxRights: kustomize-controller with the rights and flags of deploy/federation/flux applies
// and prunes Grids, here and in a cluster with a kubeconfig. Nothing is refused, and no right is
// idle.
func TestFluxRights(t *testing.T) {
	t.Parallel()
	flux, err := apiserver.EnsureFlux(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	h := newFleetHub(t)
	other := apiserver.ForTest(t, apiserver.Options{})
	other.MustKubectl(t, "apply", "--server-side", "-f", "../../deploy/crds")
	const folder = "../../deploy/federation/flux/"
	h.MustKubectl(t, "apply", "--server-side", "-f", flux.CRDs(), "-f", folder+"namespace.yaml", "-f", folder+"account.yaml", "-f", folder+"rights.yaml")
	h.WaitForDefinitions(t)
	other.WaitForDefinitions(t)
	if _, said, err := h.run(t, "join", "--cluster", "north", "--kubeconfig", h.Kubeconfig(), "--member-kubeconfig", other.Kubeconfig()); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	count := h.startFlux(t, flux, folder+"deployment.yaml")
	h.MustKubectl(t, "create", "namespace", home)
	there := apiserver.DynamicForTest(t, other.Admin())
	h.distributes(t, home, h.objects, "")
	h.distributes(t, "fleet-north", there, `, "kubeConfig": {"secretRef": {"name": "member-kubeconfig"}}`)
	no := slices.DeleteFunc(refused(count), func(r nodes.Request) bool { return r.Resource == "" }) // the path / is of no use
	if len(no) > 0 {
		t.Errorf("the rights do not suffice: %v", no)
	}
	rights := slices.DeleteFunc(read(t, "federation/flux/rights.yaml"), func(r Right) bool {
		return r.Resource == "leases" || r.Resource == "events" && r.Verb == "patch" // an Event that comes again
	})
	idle(t, rights, count)
}

// startFlux starts kustomize-controller as its account, with the flags of a Deployment.
func (h *fleetHub) startFlux(t *testing.T, flux apiserver.Flux, deployment string) *nodes.Count {
	t.Helper()
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(textOf(t, deployment)), &d); err != nil {
		t.Fatal(err)
	}
	count := &nodes.Count{}
	user, err := h.Counted("system:serviceaccount:flux-system:kustomize-controller", count)
	if err != nil {
		t.Fatal(err)
	}
	relay, err := h.NewRelay(user)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(relay.Close)
	// Only a Pod knows the namespace of its Lease.
	args := append(d.Spec.Template.Spec.Containers[0].Args, "--enable-leader-election=false")
	if _, err := h.StartFlux(wait.Usual.Context(t), flux, relay.Config(), args...); err != nil {
		t.Fatal(err)
	}
	return count
}

// distributes has Flux apply a Grid with its namespace, edit it, and remove it, by objects in a
// namespace.
func (h *fleetHub) distributes(t *testing.T, namespace string, to dynamic.Interface, kubeConfig string) {
	t.Helper()
	const space = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}`
	var packed []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed) }))
	t.Cleanup(server.Close)
	must(t, h.objects, create(artifacts, `{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "ExternalArtifact", "metadata": {"name": "grids-shop", "namespace": "`+namespace+`"}}`),
		create(kustomizations, `{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "grids-shop", "namespace": "`+namespace+`"},
"spec": {"interval": "30m0s", "retryInterval": "1s", "timeout": "30s", "path": "./", "prune": true, "sourceRef": {"kind": "ExternalArtifact", "name": "grids-shop"}`+kubeConfig+`}}`))
	for _, revision := range []string{"1", "2", ""} {
		objects := [][]byte{[]byte(space)}
		if revision != "" {
			for _, kind := range []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid"} {
				objects = append(objects, []byte(`{"apiVersion": "superedge.io/v1", "kind": "`+kind+`", "metadata": {"name": "pos", "namespace": "shop",
"annotations": {"revision": "`+revision+`"}}, "spec": {"gridUniqKey": "zone", "template": {"selector": {}, "template": {}, "serviceName": "pos", "ports": [{"port": 80}]}}}`))
			}
		}
		var err error
		if packed, err = archive.Pack(objects); err != nil {
			t.Fatal(err)
		}
		digest := archive.Digest(packed)
		status, err := json.Marshal(map[string]any{"status": map[string]any{"artifact": map[string]any{
			"url": server.URL + "/a.tar.gz", "path": "a.tar.gz", "digest": digest, "revision": digest, "lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
		}}})
		if err != nil {
			t.Fatal(err)
		}
		must(t, h.objects, patch(artifacts, namespace, "grids-shop", string(status), "status"))
		wait.Until(t, "Flux applies revision "+revision, func() error { return h.isApplied(t, namespace, to, revision) })
	}
}

var errNotApplied = errors.New("it is not applied")

// isApplied: the Grids have a revision; "": they are gone.
func (h *fleetHub) isApplied(t *testing.T, namespace string, to dynamic.Interface, revision string) error {
	var err error
	done := 0
	for _, kind := range []schema.GroupVersionResource{grids, sets, services} {
		var o *unstructured.Unstructured
		o, err = to.Resource(kind).Namespace("shop").Get(t.Context(), "pos", metav1.GetOptions{})
		if apierrors.IsNotFound(err) && revision == "" || err == nil && o.GetAnnotations()["revision"] == revision && revision != "" {
			done++
		}
	}
	if done == 3 {
		return nil
	}
	k, failure := h.objects.Resource(kustomizations).Namespace(namespace).Get(t.Context(), "grids-shop", metav1.GetOptions{})
	if failure != nil {
		return failure
	}
	return fmt.Errorf("%w: %w; Flux says %s", errNotApplied, err, strings.TrimSpace(fmt.Sprint(k.Object["status"])))
}
