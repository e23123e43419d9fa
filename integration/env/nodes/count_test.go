package nodes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// work makes one request of each kind that must be told apart.
func work(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	maps := api.CoreV1().ConfigMaps("default")
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(err)
	_, err = maps.Get(ctx, name, metav1.GetOptions{})
	must(err)
	list, err := maps.List(ctx, metav1.ListOptions{})
	must(err)
	watch, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(err)
	must(maps.Delete(ctx, name, metav1.DeleteOptions{}))
	if e := <-watch.ResultChan(); e.Object == nil {
		t.Error("a watch ended without an event")
	}
	watch.Stop()
	_, err = api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	must(err)
	labels := map[string]string{"a": "b"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
	_, err = api.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	must(err)
	applied := []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "` + name + `"}}`)
	_, err = maps.Patch(ctx, name, types.ApplyYAMLPatchType, applied, metav1.PatchOptions{FieldManager: "test"})
	must(err)
	for range 2 { // there is no such Node; what counts is that it was asked for
		_, err = api.CoreV1().Nodes().Patch(ctx, "none", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "status")
		if err == nil {
			t.Error("a Node that does not exist was patched")
		}
	}
}

// TestHaltAfter: the client gets no answer to the request that halts it, which the server has
// executed, and the server sees no request after it.
func TestHaltAfter(t *testing.T) {
	var served atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer server.Close()
	count := &Count{}
	web := http.Client{Transport: counted{count: count, delay: &delay{}, next: http.DefaultTransport}}
	halted := count.HaltAfter(2, Request.Write)
	ask := func(method string) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, method, server.URL+"/api/v1/nodes/a", nil)
		if err != nil {
			return err
		}
		go func() {
			<-halted
			cancel()
		}()
		answer, err := web.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	for i, test := range []struct {
		method string
		served int32
		gets   bool
	}{{"GET", 1, true}, {"DELETE", 2, true}, {"GET", 3, true}, {"DELETE", 4, false}, {"GET", 4, false}} {
		if err := ask(test.method); (err == nil) != test.gets || served.Load() != test.served {
			t.Errorf("request %d: the error is %v, and the server has seen %d", i, err, served.Load())
		}
	}
}

// TestWriting: a write is under way until it is counted; a read never is.
func TestWriting(t *testing.T) {
	count := &Count{}
	var during int
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { during = count.Writing() }))
	defer server.Close()
	web := http.Client{Transport: counted{count: count, delay: &delay{}, next: http.DefaultTransport}}
	for method, want := range map[string]int{"GET": 0, "DELETE": 1} {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/api/v1/nodes/a", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if during != want || count.Writing() != 0 {
			t.Errorf("%s: %d writes were under way while it was, and %d are after it", method, during, count.Writing())
		}
	}
}
