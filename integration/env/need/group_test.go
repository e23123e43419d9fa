package need

import (
	"slices"
	"strings"
	"testing"
)

// TestMissing: a program is looked up in PATH, a path as it is; what is there needs no remedy.
func TestMissing(t *testing.T) {
	here := Group{Programs: []string{"sh", "/etc/passwd"}}
	if missing := here.Missing(); len(missing) > 0 || here.Remedy() != "" {
		t.Errorf("%v is missing: %s", missing, here.Remedy())
	}
	gone := Group{Programs: []string{"sh", "no-such-program", "/no/such/file"}, Packages: []string{"one", "two"}}
	if missing := gone.Missing(); !slices.Equal(missing, []string{"no-such-program", "/no/such/file"}) {
		t.Errorf("%v is missing", missing)
	}
	if remedy := gone.Remedy(); !strings.Contains(remedy, "no-such-program") || !strings.Contains(remedy, "apt-get install one two") {
		t.Errorf("the remedy is %q", remedy)
	}
}

// TestInstallsNothing: where nothing is missing, apt-get is not run.
func TestInstallsNothing(t *testing.T) {
	var progress strings.Builder
	if err := (Group{Programs: []string{"sh"}, Packages: []string{"no such package"}}).Install(t.Context(), &progress); err != nil || progress.Len() > 0 {
		t.Errorf("%v, %q", err, &progress)
	}
}

// TestFind: a name that is mistyped is answered with those that exist.
func TestFind(t *testing.T) {
	if g, err := FindGroup("qemu"); err != nil || g.Name != "qemu" {
		t.Errorf("%v, %v", g, err)
	}
	if _, err := FindGroup("quemu"); err == nil || !strings.Contains(err.Error(), "qemu") {
		t.Errorf("the error is %v", err)
	}
}

// TestSbin: what other users' PATH lacks counts as installed all the same.
func TestSbin(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	if !installed("ldconfig") || installed("no-such-program") {
		t.Error("ldconfig is in /usr/sbin or /sbin of every Debian")
	}
}
