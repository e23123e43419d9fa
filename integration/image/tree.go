package image

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// maxLinks is how many links the kernel follows.
const maxLinks = 40

// entry is a file, folder or link of a tree.
type entry struct {
	kind    byte // of package tar
	mode    int64
	uid     int
	gid     int
	target  string // of a symbolic link
	content []byte
}

// tree is what a container sees, by path without the first slash.
type tree map[string]entry

// read adds a tar to the tree, as a layer over what is there.
func (t tree) read(r io.Reader) error {
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
		e := entry{kind: h.Typeflag, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid}
		switch h.Typeflag {
		case tar.TypeSymlink:
			e.target = h.Linkname
		case tar.TypeLink: // one file with two names is as good as two
			e = t[path.Clean(strings.TrimPrefix(h.Linkname, "/"))]
		case tar.TypeReg:
			if e.content, err = io.ReadAll(archive); err != nil {
				return fmt.Errorf("reading %s of a layer: %w", name, err)
			}
		}
		if name != "." {
			t[name] = e
		}
	}
}

// resolve finds what a path leads to over links, as the kernel does in a container.
func (t tree) resolve(name string) (entry, error) {
	todo, done := strings.Split(path.Clean(name), "/"), "."
	for links := 0; len(todo) > 0; {
		next := path.Join(done, todo[0])
		e, found := t[next]
		switch {
		case todo[0] == "..":
			done, todo = path.Dir(done), todo[1:]
		case !found:
			return entry{}, fmt.Errorf("/%s: /%s is not there", name, next)
		case e.kind != tar.TypeSymlink:
			done, todo = next, todo[1:]
		case links == maxLinks:
			return entry{}, fmt.Errorf("/%s: too many links", name)
		default:
			links++
			if path.IsAbs(e.target) {
				done = "."
			}
			todo = append(strings.Split(strings.TrimPrefix(path.Clean(e.target), "/"), "/"), todo[1:]...)
		}
	}
	return t[done], nil
}

// size is that of all files.
func (t tree) size() (n int) {
	for _, e := range t {
		n += len(e.content)
	}
	return n
}

// String is what must be equal for two entries to be the same to a container.
func (e entry) String() string {
	s := fmt.Sprintf("kind %c, mode %04o, owner %d:%d", e.kind, e.mode, e.uid, e.gid)
	switch e.kind {
	case 0:
		return "nothing"
	case tar.TypeSymlink:
		return fmt.Sprintf("link to %s, owner %d:%d", e.target, e.uid, e.gid)
	case tar.TypeReg:
		return fmt.Sprintf("%s, %d bytes, SHA-256 %.8x", s, len(e.content), sha256.Sum256(e.content))
	}
	return s
}
