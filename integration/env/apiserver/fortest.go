package apiserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// StartTimeout bounds a start that needs no build: 3 s on an idle machine, several times that on a
// busy one.
const StartTimeout = 2 * time.Minute

// ForTest builds what is missing, with progress on standard error, starts a Cluster that ends with
// the test, and shows the end of its logs if the test fails.
func ForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	var err error
	if o.Tools, err = Ensure(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	c, err := Start(wait.Usual.Context(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		ShowLogs(t, o.Dir)
	})
	return c
}

// ShowLogs shows the end of every log in a folder if the test has failed.
func ShowLogs(t testing.TB, dir string) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is well formed
	for _, log := range logs {
		t.Logf("the end of %s:\n%s", filepath.Base(log), Tail(log, 15))
	}
}

// UserForTest is User on the first API server.
func (c *Cluster) UserForTest(t testing.TB, name string, groups ...string) *rest.Config {
	t.Helper()
	config, err := c.User(c.API.Addr, name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// ClientForTest returns a client for the objects of Kubernetes.
func ClientForTest(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// DynamicForTest returns a client for the objects of any kind.
func DynamicForTest(t testing.TB, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// KubeconfigForTest writes a configuration for another process to a file that ends with the
// test, and returns its path.
func KubeconfigForTest(t testing.TB, config *rest.Config) string {
	t.Helper()
	path, err := WriteKubeconfig(t.TempDir(), "kubeconfig", config)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
