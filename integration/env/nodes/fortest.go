package nodes

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
)

// Patience is how long is waited for what must happen.
const Patience = 2 * time.Minute

// ForTest builds what is missing, with progress on standard error, starts a Cluster that ends with the
// test, and shows the end of its logs if the test fails.
func ForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	var err error
	if o.Tools, err = apiserver.Ensure(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	t.Cleanup(func() { ShowLogs(t, o.Dir) })
	ctx, cancel := context.WithTimeout(t.Context(), apiserver.StartTimeout)
	defer cancel()
	begin := time.Now()
	c, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Logf("the control plane is up after %s", time.Since(begin).Round(10*time.Millisecond))
	return c
}

// ShowLogs shows the end of every log in a folder if the test has failed.
func ShowLogs(t testing.TB, dir string) {
	if !t.Failed() {
		return
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is well formed
	for _, log := range logs {
		t.Logf("the end of %s:\n%s", filepath.Base(log), apiserver.Tail(log, 15))
	}
}

// Eventually asks again and again until ask returns nil, and fails the test with the last error when
// that does not happen within Patience.
func Eventually(t testing.TB, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := netns.Poll(ctx, func(context.Context) error { return ask() }); err != nil {
		t.Fatalf("not within %s: %s: %v", Patience, what, err)
	}
}
