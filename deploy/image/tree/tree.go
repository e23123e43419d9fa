package tree

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"
)

// Tree is a root file system: what is at each path; paths have no leading slash.
type Tree map[string]Entry

// Entry is a file, a folder or a link.
type Entry struct {
	Kind    byte        // as tar.Header.Typeflag
	Mode    fs.FileMode // the twelve bits of chmod
	UID     int
	GID     int
	Target  string // of a link
	Content []byte
}

// Folder puts a folder of root's at name.
func (t Tree) Folder(name string, mode fs.FileMode) {
	t[name] = Entry{Kind: tar.TypeDir, Mode: mode}
}

// Link puts a symbolic link at name.
func (t Tree) Link(name, target string) {
	t[name] = Entry{Kind: tar.TypeSymlink, Mode: 0o777, Target: target}
}

// File puts a file that all may read at name.
func (t Tree) File(name, content string) {
	t[name] = Entry{Kind: tar.TypeReg, Mode: 0o644, Content: []byte(content)}
}

// Add adds what a package has. Several have the same folders; no two have different files at
// one name: that is an error, as is an entry that is no file, folder or link.
func (t Tree) Add(name string, e Entry) error {
	switch e.Kind {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
	default:
		return fmt.Errorf("%s is of kind %q: only files, folders and links are expected in a package", name, e.Kind)
	}
	old, found := t[name]
	switch {
	case !found:
		t[name] = e
	case old.Kind == tar.TypeDir && e.Kind == tar.TypeDir:
	case old.Kind == e.Kind && old.Target == e.Target && bytes.Equal(old.Content, e.Content):
	default:
		return fmt.Errorf("%s is in two packages, and not the same", name)
	}
	return nil
}

// WriteTar writes the tree in the order of its names. All has one time, so that equal trees
// are equal bytes.
func (t Tree) WriteTar(w io.Writer, modified time.Time) error {
	out := tar.NewWriter(w)
	for _, name := range t.Names() {
		e := t[name]
		h := &tar.Header{
			Typeflag: e.Kind, Name: name, Linkname: e.Target, Mode: int64(e.Mode), Uid: e.UID, Gid: e.GID,
			Size: int64(len(e.Content)), ModTime: modified, Format: tar.FormatGNU,
		}
		if e.Kind == tar.TypeDir {
			h.Name += "/"
		}
		if err := out.WriteHeader(h); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if _, err := out.Write(e.Content); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return out.Close()
}

// Names adds the folders that no package names to the tree, and returns all paths, sorted, each
// folder's before those in it.
func (t Tree) Names() []string {
	for name := range maps.Clone(t) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, found := t[dir]; !found {
				t.Folder(dir, 0o755)
			}
		}
	}
	return slices.Sorted(maps.Keys(t))
}
