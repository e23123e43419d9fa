package main

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

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

// size is that of all files.
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
