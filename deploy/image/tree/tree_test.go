package tree

import "testing"

// TestResolve: links lead where they lead a program that has the tree as its root.
func TestResolve(t *testing.T) {
	files := Tree{}
	files.Folder("usr", 0o755)
	files.Folder("usr/sbin", 0o755)
	files.File("usr/sbin/a", "found")
	files.Link("usr/sbin/beside", "a")
	files.Link("usr/sbin/from-root", "/sbin/a")
	files.Link("usr/sbin/over-a-folder", "../sbin/a")
	files.Link("usr/sbin/above-the-root", "../../../../sbin/a")
	files.Link("usr/sbin/nowhere", "../b")
	files.Link("usr/sbin/ring", "ring")
	files.Link("sbin", "usr/sbin")
	for name, found := range map[string]bool{
		"usr/sbin/a": true, "usr/sbin/beside": true, "usr/sbin/from-root": true, "usr/sbin/over-a-folder": true,
		"usr/sbin/above-the-root": true, "sbin/beside": true,
		"usr/sbin/nowhere": false, "usr/sbin/ring": false, "a": false,
	} {
		e, err := files.Resolve(name)
		if (err == nil) != found || found && string(e.Content) != "found" {
			t.Errorf("/%s leads to %q, %v; want it found: %t", name, e.Content, err, found)
		}
	}
}
