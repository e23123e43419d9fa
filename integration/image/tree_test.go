package image

import (
	"archive/tar"
	"bytes"
	"testing"
)

// packed is a tar of these headers; a file's content is its name.
func packed(t *testing.T, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(h.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &b
}

// TestTree: links lead where they lead in a container, and a layer that takes something away is noticed.
func TestTree(t *testing.T) {
	files := tree{}
	if err := files.read(packed(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "usr/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "usr/sbin/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "usr/sbin/a", Typeflag: tar.TypeReg, Mode: 0o755},
		tar.Header{Name: "usr/sbin/same", Typeflag: tar.TypeLink, Linkname: "usr/sbin/a"},
		tar.Header{Name: "usr/sbin/beside", Typeflag: tar.TypeSymlink, Linkname: "a"},
		tar.Header{Name: "usr/sbin/from-root", Typeflag: tar.TypeSymlink, Linkname: "/sbin/a"},
		tar.Header{Name: "usr/sbin/nowhere", Typeflag: tar.TypeSymlink, Linkname: "../b"},
		tar.Header{Name: "usr/sbin/ring", Typeflag: tar.TypeSymlink, Linkname: "ring"},
		tar.Header{Name: "sbin", Typeflag: tar.TypeSymlink, Linkname: "usr/sbin"},
	)); err != nil {
		t.Fatal(err)
	}
	for name, found := range map[string]bool{
		"usr/sbin/a": true, "usr/sbin/same": true, "usr/sbin/beside": true, "usr/sbin/from-root": true, "sbin/beside": true,
		"usr/sbin/nowhere": false, "usr/sbin/ring": false, "a": false,
	} {
		e, err := files.resolve(name)
		if (err == nil) != found || found && string(e.content) != "usr/sbin/a" {
			t.Errorf("/%s leads to %q, %v; want it found: %t", name, e.content, err, found)
		}
	}
	if files["usr/sbin/a"].String() != files["usr/sbin/same"].String() || files["sbin"].String() == files["usr/sbin/beside"].String() {
		t.Errorf("entries are taken for equal, or for different: %v", files.described())
	}
	if err := files.read(packed(t, tar.Header{Name: "usr/sbin/.wh.a", Typeflag: tar.TypeReg})); err == nil {
		t.Error("a layer that removes a file was read as if it did not")
	}
}
