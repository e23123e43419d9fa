package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"

	"gridproxy/deploy/image/tree"
)

// addLayer adds a tar to a tree, over what is there.
func addLayer(t tree.Tree, r io.Reader) error {
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a layer: %w", err)
		}
		name := path.Clean(strings.TrimPrefix(h.Name, "/"))
		if strings.HasPrefix(path.Base(name), ".wh.") {
			return fmt.Errorf("a layer removes %s: nothing lies below the last stage that could be removed", name)
		}
		e := tree.Entry{Kind: h.Typeflag, Mode: fs.FileMode(h.Mode & 0o7777), UID: h.Uid, GID: h.Gid}
		switch h.Typeflag {
		case tar.TypeSymlink:
			e.Target = h.Linkname
		case tar.TypeLink: // one file with two names is as good as two
			e = t[path.Clean(strings.TrimPrefix(h.Linkname, "/"))]
		case tar.TypeReg:
			if e.Content, err = io.ReadAll(archive); err != nil {
				return fmt.Errorf("reading %s of a layer: %w", name, err)
			}
		}
		if name != "." {
			t[name] = e
		}
	}
}

func size(t tree.Tree) (n int) {
	for _, e := range t {
		n += len(e.Content)
	}
	return n
}

// describe is what must be equal for two entries to be the same to a container.
func describe(e tree.Entry) string {
	s := fmt.Sprintf("kind %c, mode %04o, owner %d:%d", e.Kind, e.Mode, e.UID, e.GID)
	switch e.Kind {
	case 0:
		return "nothing"
	case tar.TypeSymlink:
		return fmt.Sprintf("link to %s, owner %d:%d", e.Target, e.UID, e.GID)
	case tar.TypeReg:
		return fmt.Sprintf("%s, %d bytes, SHA-256 %.8x", s, len(e.Content), sha256.Sum256(e.Content))
	}
	return s
}

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
