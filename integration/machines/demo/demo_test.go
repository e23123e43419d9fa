package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"gridproxy/integration/need"
)

// TestDemo plays the whole demo: closure holds, and no file is left.
func TestDemo(t *testing.T) {
	need.Cluster(t)
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	if err := demo(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		"node/gz-2   Ready", "deployment.apps/deploymentgrid-demo-guangzhou   2/2", "80 requests: 0 left their unit, 0 failed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q:\n%s", want, &out)
		}
	}
	t.Logf("\n%s", &out)
	nothingLeft(t)
}

// TestInterrupt ends the demo while machines start, as Ctrl-C does.
func TestInterrupt(t *testing.T) {
	need.Cluster(t)
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	out := &trigger{text: "four machines", fire: cancel}
	if err := demo(ctx, out); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted, the demo ends with %v", err)
	}
	nothingLeft(t)
}

// trigger fires once a text is written.
type trigger struct {
	text string
	fire func()
}

func (t *trigger) Write(b []byte) (int, error) {
	if strings.Contains(string(b), t.text) {
		t.fire()
	}
	return len(b), nil
}

// nothingLeft: the demo leaves no file; the processes and control groups of a cluster are package machines' to
// test.
func nothingLeft(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range left {
		t.Errorf("%s is left", file.Name())
	}
}
