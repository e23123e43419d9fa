package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadOnlySettings: /proc/sys is writable in every privileged container; /sys on some machines
// in none.
func TestReadOnlySettings(t *testing.T) {
	refused := func(path string, err error) error {
		return fmt.Errorf("setting it: %w; advice", errors.Join(&fs.PathError{Op: "open", Path: path, Err: err}))
	}
	const table, timeout = "/sys/module/nf_conntrack/parameters/hashsize", "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_close_wait"
	if err := readOnly([]error{refused(table, unix.EROFS), refused(timeout, unix.EACCES)}); err != nil {
		t.Errorf("fatal: %v", err)
	}
	if err := readOnly([]error{refused(table, unix.EROFS), refused(timeout, unix.EROFS)}); err == nil || !strings.Contains(err.Error(), "1 settings are wrong") {
		t.Errorf("want an error about one setting, got %v", err)
	}
}
