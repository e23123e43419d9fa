package apiserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var (
	artifacts      = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "externalartifacts"}
	kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	configMaps     = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// engineTest is a control plane with kustomize-controller, a server of archives, and a second
// control plane without any controller.
type engineTest struct {
	engine              *Engine
	client, otherClient dynamic.Interface
	other               *Cluster
	server              *httptest.Server

	mu    sync.Mutex
	files map[string][]byte // by path
}

func newEngineTest(t *testing.T) *engineTest {
	flux, err := EnsureFlux(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := ForTest(t, Options{})
	e := &engineTest{other: ForTest(t, Options{}), files: map[string][]byte{}}
	e.client, e.otherClient = DynamicForTest(t, c.Admin()), DynamicForTest(t, e.other.Admin())
	e.server = httptest.NewServer(e)
	t.Cleanup(e.server.Close)
	c.MustKubectl(t, "apply", "--server-side", "-f", flux.CRDs())
	c.WaitForDefinitions(t)
	if e.engine, err = c.StartFlux(wait.Usual.Context(t), flux, c.Admin(), "--requeue-dependency=1s"); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *engineTest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	content, found := e.files[r.URL.Path]
	e.mu.Unlock()
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content) // the engine asks again
}

func object(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"},"data":{"key":%q}}`, name, value)
}

// store packs objects, has them served, and returns the digest of the archive, which is its name
// too.
func (e *engineTest) store(t *testing.T, objects ...string) string {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	for i, o := range objects {
		header := &tar.Header{Name: fmt.Sprintf("%d.yaml", i), Mode: 0o644, Size: int64(len(o))}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(o)); err != nil {
			t.Fatal(err)
		}
	}
	for _, closer := range []func() error{w.Close, zipped.Close} {
		if err := closer(); err != nil {
			t.Fatal(err)
		}
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(packed.Bytes()))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.files["/"+digest] = packed.Bytes()
	return digest
}

func (e *engineTest) publish(t *testing.T, name string, objects ...string) {
	t.Helper()
	digest := e.store(t, objects...)
	e.describe(t, name, digest, digest)
}

func (e *engineTest) describe(t *testing.T, name, path, digest string) {
	t.Helper()
	e.create(t, artifacts, map[string]any{
		"apiVersion": artifacts.GroupVersion().String(), "kind": "ExternalArtifact", "metadata": map[string]any{"name": name},
	})
	status, err := json.Marshal(map[string]any{"status": map[string]any{"artifact": map[string]any{
		"url": e.server.URL + "/" + path, "path": path, "digest": "sha256:" + digest, "revision": "sha256:" + digest,
		"lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	e.patch(t, artifacts, name, string(status), "status")
}

// kustomize creates the Kustomization of an artifact, with further fields of its spec.
func (e *engineTest) kustomize(t *testing.T, name string, more map[string]any) {
	t.Helper()
	spec := map[string]any{
		"interval": "1h", "retryInterval": "1s", "timeout": "30s", "prune": true, "path": "./",
		"sourceRef": map[string]any{"kind": "ExternalArtifact", "name": name},
	}
	maps.Copy(spec, more)
	e.create(t, kustomizations, map[string]any{
		"apiVersion": kustomizations.GroupVersion().String(), "kind": "Kustomization", "metadata": map[string]any{"name": name}, "spec": spec,
	})
}

func (e *engineTest) createSecret(t *testing.T, name string, config *rest.Config) {
	t.Helper()
	content, err := kubeconfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e.create(t, corev1.SchemeGroupVersion.WithResource("secrets"), map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "stringData": map[string]any{"value": string(content)},
	})
}

// create creates an object unless it is there.
func (e *engineTest) create(t *testing.T, r schema.GroupVersionResource, object map[string]any) {
	t.Helper()
	_, err := e.client.Resource(r).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func (e *engineTest) patch(t *testing.T, r schema.GroupVersionResource, name, patch string, subresources ...string) {
	t.Helper()
	_, err := e.client.Resource(r).Namespace("default").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

// request has a Kustomization reconciled, and waits until it is.
func (e *engineTest) request(t *testing.T, name, value string) {
	t.Helper()
	e.patch(t, kustomizations, name, fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, value))
	wait.Until(t, "Kustomization "+name+" has handled the request", func() error {
		handled := e.field(t, name, "status", "lastHandledReconcileAt")
		return wait.Check(handled == value, "the last one that it has handled is %q, want %q", handled, value)
	})
	e.expectReady(t, name, "Applied revision")
}

func (e *engineTest) field(t *testing.T, name string, path ...string) string {
	o, err := e.client.Resource(kustomizations).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	value, _, _ := unstructured.NestedString(o.Object, path...) // "": it is not there
	return value
}

// expectReady waits until the condition Ready of a Kustomization, or the failure to read it, has a
// text.
func (e *engineTest) expectReady(t *testing.T, name, text string) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("Kustomization %s says %q", name, text), func() error {
		message := e.readiness(t, name)
		return wait.Check(strings.Contains(message, text), "%s", message)
	})
}

func (e *engineTest) readiness(t *testing.T, name string) string {
	o, err := e.client.Resource(kustomizations).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // none: they are not there yet
	for _, c := range conditions {
		if condition, isMap := c.(map[string]any); isMap && condition["type"] == "Ready" {
			return fmt.Sprint(condition["message"])
		}
	}
	return ""
}

// values are what ConfigMaps hold, by their names.
type values map[string]string

const absent = "(absent)"

func (e *engineTest) expect(t *testing.T, client dynamic.Interface, want values) {
	t.Helper()
	wait.Until(t, "the ConfigMaps hold what is wanted", func() error {
		for name, value := range want {
			o, err := client.Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
			got := absent
			if err == nil {
				got, _, err = unstructured.NestedString(o.Object, "data", "key")
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("reading ConfigMap %s: %w", name, err)
			}
			if got != value {
				return fmt.Errorf("ConfigMap %s holds %q, want %q", name, got, value)
			}
		}
		return nil
	})
}

func (e *engineTest) version(t *testing.T, name string) string {
	t.Helper()
	o, err := e.client.Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o.GetResourceVersion()
}
