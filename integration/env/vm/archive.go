package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Kinds of file, the upper bits of the archive's mode field.
const (
	kindDir  = 0o040000
	kindFile = 0o100000
	kindLink = 0o120000
)

// Archive writes the entries of a cpio archive. Parents are written automatically, and of two
// entries of one path only the first. The first error is kept, stops all writing, and is returned
// by Close.
type Archive struct {
	w      *bufio.Writer
	seen   map[string]bool
	offset int64
	err    error
}

// NewArchive writes to w until Close.
func NewArchive(w io.Writer) *Archive {
	return &Archive{w: bufio.NewWriterSize(w, 1<<20), seen: map[string]bool{"/": true}}
}

// Dir adds an empty folder.
func (a *Archive) Dir(name string) {
	if a.begin(name) {
		a.header(name, kindDir|0o755, 0)
	}
}

// Link adds a symbolic link.
func (a *Archive) Link(name, target string) { a.content(name, kindLink|0o777, []byte(target)) }

// Bytes adds a file of this content.
func (a *Archive) Bytes(name string, mode fs.FileMode, content []byte) {
	a.content(name, kindFile|uint32(mode.Perm()), content)
}

// File adds a copy of a file of this machine.
func (a *Archive) File(name, source string) {
	if !a.begin(name) {
		return
	}
	f, err := os.Open(source)
	if err != nil {
		a.fail(err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		a.fail(err)
		return
	}
	a.header(name, kindFile|uint32(info.Mode().Perm()), info.Size())
	if a.err != nil {
		return
	}
	n, err := io.Copy(a.w, f)
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%s changed while it was read", source)
	}
	a.fail(err)
	a.offset += n
	a.pad()
}

// Has says whether there is an entry of this path.
func (a *Archive) Has(name string) bool { return a.seen[path.Clean(name)] }

// Close ends the archive, which does not close what it was written to.
func (a *Archive) Close() error {
	a.header("TRAILER!!!", 0, 0)
	if a.err != nil {
		return fmt.Errorf("writing the archive: %w", a.err)
	}
	if err := a.w.Flush(); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}

// begin says whether name is to be written, and writes its parents.
func (a *Archive) begin(name string) bool {
	if !path.IsAbs(name) {
		a.fail(fmt.Errorf("%q is not an absolute path", name))
	}
	name = path.Clean(name)
	if a.err != nil || a.seen[name] {
		return false
	}
	a.seen[name] = true
	a.Dir(path.Dir(name))
	return true
}

func (a *Archive) content(name string, mode uint32, content []byte) {
	if a.begin(name) {
		a.header(name, mode, int64(len(content)))
		a.write(content)
		a.pad()
	}
}

// header writes the 110 bytes in front of an entry and its name. The kernel takes files of one inode
// number for links to each other, so every entry has its own; a number is given once.
func (a *Archive) header(name string, mode uint32, size int64) {
	if size > 1<<32-1 {
		a.fail(fmt.Errorf("%s has %d bytes: the format has room for 4 GiB", name, size))
		return
	}
	name = strings.TrimPrefix(path.Clean(name), "/")
	fields := [...]int64{int64(len(a.seen)), int64(mode), 0, 0, 1, 0, size, 0, 0, 0, 0, int64(len(name) + 1), 0}
	var b strings.Builder
	b.WriteString("070701")
	for _, f := range fields {
		fmt.Fprintf(&b, "%08X", f)
	}
	b.WriteString(name + "\x00")
	a.write([]byte(b.String()))
	a.pad()
}

func (a *Archive) write(b []byte) {
	if a.err == nil {
		n, err := a.w.Write(b)
		a.offset += int64(n)
		a.fail(err)
	}
}

func (a *Archive) pad() { a.write(make([]byte, (4-a.offset%4)%4)) }

func (a *Archive) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}
