package apiserver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestClusterForgetsAndKeeps goes through what the tests of watching rely on: objects survive a stop,
// another API server writes meanwhile, and compaction makes old versions gone, which they were not.
func TestClusterForgetsAndKeeps(t *testing.T) {
	c := ForTest(t, Options{})
	ctx := wait.Usual.Context(t)
	create := func(api kubernetes.Interface, name string) *corev1.Service {
		t.Helper()
		s, err := api.CoreV1().Services("default").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := ClientForTest(t, c.Admin())
	a := create(first, "a")
	if !strings.HasPrefix(a.Spec.ClusterIP, "10.96.") {
		t.Errorf("a Service got cluster IP %q", a.Spec.ClusterIP)
	}
	other, err := c.AddAPIServer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.API.Stop()
	create(ClientForTest(t, c.AdminAt(other.Addr)), "b")
	if err := c.API.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.expectGone(ctx, create(first, "c").ResourceVersion); !errors.Is(err, errServed) {
		t.Errorf("a watch from now should be served and said to be: %v", err)
	}
	if err := c.CompactAndForceGone(ctx); err != nil {
		t.Error(err)
	}
	list, err := first.CoreV1().Services("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "a b c kubernetes" {
		t.Errorf("Services after all that: %s", got)
	}
}

func TestKubeconfigIsEnough(t *testing.T) {
	c := ForTest(t, Options{})
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	version, err := ClientForTest(t, config).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != Version {
		t.Errorf("the API server says it is %s, want %s", version.GitVersion, Version)
	}
}

func TestChildEndsAndTells(t *testing.T) {
	child, err := StartChild(Spec{Name: "sh", Path: "/bin/sh", Args: []string{"-c", "echo reason; exit 3"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = child.WaitFor(ctx, func(context.Context) error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "reason") {
		t.Errorf("the error should name the exit status and show the log: %v", err)
	}
}
