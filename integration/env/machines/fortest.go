package machines

import (
	"context"
	"os"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
)

// ForTest builds what is missing, with progress on standard error, starts a Cluster that ends with the test,
// and shows the end of its logs if the test fails.
func ForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	need.Cluster(t)
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Progress = os.Stderr
	t.Cleanup(func() { apiserver.ShowLogs(t, o.Dir) })
	// What has to be built first has no deadline but the test's own.
	if _, err := apiserver.Ensure(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if _, err := apiserver.EnsureNodeRuntime(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), apiserver.StartTimeout)
	defer cancel()
	begin := time.Now()
	c, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("the control plane is up after %s", c.planeUp.Round(10*time.Millisecond))
	t.Logf("%d machines are ready after %s", len(c.machines), time.Since(begin).Round(10*time.Millisecond))
	return c
}

// ImageForTest makes an image in a folder that ends with the test.
func ImageForTest(t testing.TB, make func(ctx context.Context, dir string) (Image, error)) Image {
	t.Helper()
	image, err := make(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return image
}
