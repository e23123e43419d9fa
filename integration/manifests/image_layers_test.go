package main

import (
	"archive/tar"
	"bytes"
	"testing"

	"gridproxy/deploy/image/tree"
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

// TestLayers: what is read of an image is what a container sees, and a layer that takes something away is noticed.
func TestLayers(t *testing.T) {
	files := tree.Tree{}
	if err := addLayer(files, packed(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "usr/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "usr/sbin/", Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "usr/sbin/a", Typeflag: tar.TypeReg, Mode: 0o755},
		tar.Header{Name: "usr/sbin/same", Typeflag: tar.TypeLink, Linkname: "usr/sbin/a"},
		tar.Header{Name: "usr/sbin/beside", Typeflag: tar.TypeSymlink, Linkname: "a"},
		tar.Header{Name: "sbin", Typeflag: tar.TypeSymlink, Linkname: "usr/sbin"},
	)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"usr/sbin/same", "sbin/beside"} {
		if e, err := files.Resolve(name); err != nil || string(e.Content) != "usr/sbin/a" {
			t.Errorf("/%s leads to %q, %v", name, e.Content, err)
		}
	}
	if describe(files["usr/sbin/a"]) != describe(files["usr/sbin/same"]) || describe(files["sbin"]) == describe(files["usr/sbin/beside"]) {
		t.Errorf("entries are taken for equal, or for different: %v", described(files))
	}
	if err := addLayer(files, packed(t, tar.Header{Name: "usr/sbin/.wh.a", Typeflag: tar.TypeReg})); err == nil {
		t.Error("a layer that removes a file was read as if it did not")
	}
}
