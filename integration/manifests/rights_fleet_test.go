package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// The kinds of a fleet.
var (
	fleetClusters = schema.GroupVersionResource{Group: "superedge.io", Version: "v1alpha1", Resource: "fleetclusters"}
	bundles       = schema.GroupVersionResource{Group: "superedge.io", Version: "v1alpha1", Resource: "gridbundles"}
	reports       = schema.GroupVersionResource{Group: "superedge.io", Version: "v1alpha1", Resource: "gridreports"}
	leases        = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	secrets       = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// fleetHub is a hub, where grid-controller join is run as an administrator.
type fleetHub struct {
	*nodes.Cluster
	objects dynamic.Interface
	binary  string
}

func newFleetHub(t *testing.T) *fleetHub {
	t.Helper()
	h := &fleetHub{Cluster: nodes.ForTest(t, nodes.Options{Manifests: []string{"../../deploy/crds"}})}
	h.binary = program.ForTest(t, program.GridController)
	h.objects = apiserver.DynamicForTest(t, h.Admin())
	return h
}

func (h *fleetHub) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(wait.Usual.Context(t), h.binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	err = cmd.Run()
	return out.String(), problems.String(), err
}

// join joins a cluster by pull and returns what the manifest for the member says.
func (h *fleetHub) join(t *testing.T, cluster string) (manifest, stderr string, data map[string]string) {
	t.Helper()
	manifest, stderr, err := h.run(t, "join", "--cluster", cluster, "--kubeconfig", h.Kubeconfig())
	if err != nil {
		t.Fatalf("joining %s: %v: %s", cluster, err, stderr)
	}
	_, document, _ := strings.Cut(manifest, "---\n")
	var secret corev1.Secret
	if err := yaml.UnmarshalStrict([]byte(document), &secret); err != nil {
		t.Fatalf("%v:\n%s", err, manifest)
	}
	return manifest, stderr, secret.StringData
}

// as is a client that has nothing but what the manifest for a member says.
func as(t *testing.T, data map[string]string) (dynamic.Interface, *rest.Config) {
	t.Helper()
	config := &rest.Config{
		Host: data["server"], BearerToken: data["token"], QPS: -1, WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(data["ca.crt"])},
	}
	return apiserver.DynamicForTest(t, config), config
}

// attempt is a request, and whether an account may make it.
type attempt struct {
	what string
	do   func(context.Context, dynamic.Interface) error
}

func get(of schema.GroupVersionResource, namespace, name string) attempt {
	return attempt{fmt.Sprintf("get %s %s/%s", of.Resource, namespace, name), func(ctx context.Context, c dynamic.Interface) error {
		_, err := c.Resource(of).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}}
}

func list(of schema.GroupVersionResource, namespace, field string) attempt {
	return attempt{fmt.Sprintf("list %s in %q %s", of.Resource, namespace, field), func(ctx context.Context, c dynamic.Interface) error {
		_, err := c.Resource(of).Namespace(namespace).List(ctx, metav1.ListOptions{FieldSelector: field})
		return err
	}}
}

func create(of schema.GroupVersionResource, text string, sub ...string) attempt {
	o := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(text), &o.Object)
	return attempt{fmt.Sprintf("create %s %v %s/%s", of.Resource, sub, o.GetNamespace(), o.GetName()), func(ctx context.Context, c dynamic.Interface) error {
		if err != nil {
			return err
		}
		_, err := c.Resource(of).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{}, sub...)
		return err
	}}
}

func patch(of schema.GroupVersionResource, namespace, name, text string, sub ...string) attempt {
	return attempt{fmt.Sprintf("patch %s %v %s/%s", of.Resource, sub, namespace, name), func(ctx context.Context, c dynamic.Interface) error {
		_, err := c.Resource(of).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, sub...)
		return err
	}}
}

func erase(of schema.GroupVersionResource, namespace, name string) attempt {
	return attempt{fmt.Sprintf("delete %s %s/%s", of.Resource, namespace, name), func(ctx context.Context, c dynamic.Interface) error {
		return c.Resource(of).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	}}
}

// must makes requests that have to succeed.
func must(t *testing.T, c dynamic.Interface, all ...attempt) {
	t.Helper()
	for _, a := range all {
		if err := a.do(t.Context(), c); err != nil {
			t.Errorf("%s: %v", a.what, err)
		}
	}
}

// mustNot makes requests that have to be refused for want of a right.
func mustNot(t *testing.T, c dynamic.Interface, all ...attempt) {
	t.Helper()
	for _, a := range all {
		if err := a.do(t.Context(), c); !apierrors.IsForbidden(err) {
			t.Errorf("%s is not refused: %v", a.what, err)
		}
	}
}

// stranger is the kubeconfig of a user without rights.
func (h *fleetHub) stranger(t *testing.T) string {
	t.Helper()
	return apiserver.KubeconfigForTest(t, h.UserForTest(t, "stranger"))
}

// fails runs grid-controller, which must end with code 3, these words and an empty standard output.
func (h *fleetHub) fails(t *testing.T, words string, args ...string) {
	t.Helper()
	out, said, err := h.run(t, args...)
	exit, ended := err.(*exec.ExitError) //nolint:errorlint // it is not wrapped
	if !ended || exit.ExitCode() != 3 || !strings.Contains(said, words) || out != "" {
		t.Errorf("%v: %v, standard output %q, standard error:\n%s\nwant code 3 and %q", args, err, out, said, words)
	}
}

func fileIn(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
