package apiserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
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
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(o.Dir, "*.log"))
			for _, log := range logs {
				t.Logf("the end of %s:\n%s", filepath.Base(log), Tail(log, 15))
			}
		}
	})
	return c
}
