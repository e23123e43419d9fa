package regularfile

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("file"), []byte("text"), 0o600), os.Symlink("file", at("link")),
		syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("fifo", at("link-to-fifo")), os.Symlink("nothing", at("dangling")),
		os.Symlink("/dev/zero", at("link-to-device")),
	); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, want := range map[string]string{
		at("file"): "", at("link"): "", "/proc/self/status": "",
		at("fifo"): "is a FIFO", at("link-to-fifo"): "is a FIFO", at("socket"): "is a socket", "/dev/zero": "is a device",
		at("link-to-device"): "is a device", dir: "is a directory", at("dangling"): "no such file", at("missing"): "no such file",
	} {
		text, err := Read(name, 1<<20) // hangs if it opens a FIFO
		switch {
		case want == "" && (err != nil || len(text) == 0):
			t.Errorf("%s: %q, %v", name, text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want an error with %q", name, err, want)
		}
	}
}

func TestReadIsLimited(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(name, 5); err != nil || string(text) != "12345" {
		t.Errorf("at the limit: %q, %v", text, err)
	}
	var tooLarge TooLargeError
	if text, err := Read(name, 4); !errors.As(err, &tooLarge) || tooLarge.Limit != 4 {
		t.Errorf("above the limit: %q, %v", text, err)
	}
}
