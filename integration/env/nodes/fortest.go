package nodes

import (
	"context"
	"os"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"
)

// ForTest builds what is missing, with progress on standard error, starts a Cluster that ends with
// the test, and shows the end of its logs if the test fails.
func ForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	return SeveralForTest(t, o)[0]
}

// SeveralForTest is ForTest for clusters that start at the same time.
func SeveralForTest(t testing.TB, options ...Options) []*Cluster {
	t.Helper()
	tools, err := apiserver.Ensure(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for i := range options {
		o := &options[i]
		if o.Tools = tools; o.Dir == "" {
			o.Dir = t.TempDir()
		}
		t.Cleanup(func() { apiserver.ShowLogs(t, o.Dir) })
	}
	ctx, cancel := context.WithTimeout(t.Context(), apiserver.StartTimeout)
	defer cancel()
	begin := time.Now()
	clusters := make([]*Cluster, len(options))
	starts := make([]func() error, len(options))
	for i, o := range options {
		starts[i] = func() (err error) {
			clusters[i], err = Start(ctx, o)
			return err
		}
	}
	err = wait.Each(starts, func(start func() error) error { return start() })
	for _, c := range clusters {
		if c != nil {
			t.Cleanup(c.Close)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d control planes are up after %s", len(clusters), time.Since(begin).Round(10*time.Millisecond))
	return clusters
}
