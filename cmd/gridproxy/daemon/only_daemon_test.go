package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	if err := os.WriteFile(file, []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := lockNamespace(t.Context(), options.Options{}, file, 0, log); err != nil {
			t.Errorf("where the folder cannot be written: %v", err)
		}
	}
	if n := strings.Count(text.String(), "level=WARN"); n != 2 || !strings.Contains(text.String(), "make "+file+" writable") {
		t.Errorf("%d warnings:\n%s", n, &text)
	}
}
