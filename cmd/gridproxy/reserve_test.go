package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/integration/env/wait"
)

// TestReservedLater: a kubeconfig that is missing at the start reserves the address in it once it
// can be read, and causes a run.
func TestReservedLater(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	o := options.Options{NodeName: "n1", Kubeconfig: file}
	d := &daemon{log: slog.New(slog.DiscardHandler), node: "n1"}
	if err := d.connect(t.Context(), o, nil, nil, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.events.close)
	if got := d.reservedNow(); got != nil {
		t.Errorf("%v is reserved without kubeconfig", got)
	}
	if err := os.Rename(kubeconfigOf(t, "192.0.2.9:6443"), file); err != nil {
		t.Fatal(err)
	}
	runSource(t, d)
	wait.Receive(t, "a change is signalled when the kubeconfig can be read", d.source.Changed())
	if got := fmt.Sprint(d.reservedNow()); got != "[192.0.2.9:6443]" {
		t.Errorf("%s is reserved", got)
	}
}
