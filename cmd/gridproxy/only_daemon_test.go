package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
)

// TestSecondDaemonIsRefused: it names the process and version of the first one. A shadow and a
// daemon with --service-proxy-name run beside it. Without a folder for the lock there is a warning.
func TestSecondDaemonIsRefused(t *testing.T) {
	var text bytes.Buffer
	log, folder := command.NewLog(&text, "text", 0), filepath.Join(t.TempDir(), "run")
	release, err := lockNamespace(t.Context(), options.Options{}, folder, 0, log)
	if err != nil || text.Len() > 0 {
		t.Fatalf("the first daemon: %v, log %q", err, &text)
	}
	want := fmt.Sprintf("process %d, version %s ", os.Getpid(), command.ThisBuild().Version)
	if _, err := lockNamespace(t.Context(), options.Options{}, folder, 0, log); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the second daemon: %v, want %q", err, want)
	}
	for _, o := range []options.Options{{Shadow: true}, {ServiceProxyName: "trial"}} {
		if _, err := lockNamespace(t.Context(), o, folder, 0, log); err != nil || text.Len() > 0 {
			t.Errorf("%+v: %v, log %q", o, err, &text)
		}
	}
	release()
	if release, err = lockNamespace(t.Context(), options.Options{}, folder, 0, log); err != nil {
		t.Errorf("after the first one has ended: %v", err)
	}
	defer release()

	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "no folder")
	for range 2 {
		if _, err := lockNamespace(t.Context(), options.Options{}, file, 0, log); err != nil {
			t.Errorf("where the folder cannot be written: %v", err)
		}
	}
	if n := strings.Count(text.String(), "level=WARN"); n != 2 || !strings.Contains(text.String(), "make "+file+" writable") {
		t.Errorf("%d warnings:\n%s", n, &text)
	}
}

// TestSecondDaemonWaits: a daemon that starts while another one serves the network namespace writes
// nothing until that has ended, even by a kill, and serves then. --init-only waits for nothing.
func TestSecondDaemonWaits(t *testing.T) {
	t.Parallel()
	manifests := filepath.Join(t.TempDir(), "cluster.yaml")
	write(t, manifests, cluster("10.0.0.70", "beijing"))
	args := []string{"--node-name=bj-3", "--manifests=" + manifests}
	first := start(t, args...)
	first.until(t, "ready", func() bool { return first.get("/readyz", 10256).code == 200 })
	if init := startIn(t, first.ns, append(args, "--init-only")...); init.wait(t) != 0 {
		t.Error("--init-only is refused")
	}
	second := startIn(t, first.ns, args...)
	second.until(t, "it waits", func() bool {
		return second.logged(fmt.Sprintf("waiting for it to end\" holder=\"process %d, version ", first.cmd.Process.Pid)) == 1
	})
	first.stop(t, syscall.SIGKILL)
	second.until(t, "ready", func() bool { return second.get("/readyz", 10256).code == 200 })
	second.stop(t, syscall.SIGTERM)
}
