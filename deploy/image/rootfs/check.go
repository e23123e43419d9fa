package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Check reports everything by which a program of the tree would not start: programs that
// are not there, links to nowhere, code for another machine, libraries that are missing.
func (t Tree) Check(arch Arch, programs []string) error {
	var wrong []error
	for _, p := range programs {
		name := path.Join("usr/sbin", p)
		e, err := t.resolve(name)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("program %s: %w", name, err))
		case e.Kind != tar.TypeReg || e.Mode&0o111 != 0o111 || !bytes.HasPrefix(e.Content, []byte(elf.ELFMAG)):
			wrong = append(wrong, fmt.Errorf("%s is no program that all may execute", name))
		}
	}
	for _, name := range t.names() {
		e := t[name]
		switch {
		case e.Kind == tar.TypeSymlink || e.Kind == tar.TypeLink:
			if _, err := t.resolve(name); err != nil {
				wrong = append(wrong, fmt.Errorf("link %s: %w", name, err))
			}
		case bytes.HasPrefix(e.Content, []byte(elf.ELFMAG)):
			if err := t.checkCode(e, arch); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(wrong...)
}

// checkCode looks at one program or library.
func (t Tree) checkCode(e Entry, arch Arch) error {
	f, err := elf.NewFile(bytes.NewReader(e.Content))
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if f.Machine != arch.Machine || f.Class != arch.Class {
		return fmt.Errorf("it is for %v, %v, not for %s", f.Machine, f.Class, arch.Debian)
	}
	var wrong []error
	if loader := interpreter(f); loader != "" {
		if _, err := t.resolve(strings.TrimPrefix(loader, "/")); err != nil {
			wrong = append(wrong, fmt.Errorf("its loader: %w", err))
		}
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("reading the libraries that it needs: %w", err)
	}
	for _, l := range libraries {
		_, inFolder := t.resolve(path.Join("usr/lib", arch.Triplet, l))
		_, above := t.resolve(path.Join("usr/lib", l))
		if inFolder != nil && above != nil {
			wrong = append(wrong, fmt.Errorf("the library %s that it needs is missing", l))
		}
	}
	return errors.Join(wrong...)
}

// interpreter is the dynamic loader that a program names, "" for a static one.
func interpreter(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, p.Filesz)
		if _, err := p.ReadAt(name, 0); err != nil {
			return "unreadable"
		}
		return string(bytes.TrimRight(name, "\x00"))
	}
	return ""
}

// maxLinks is how many links the kernel follows.
const maxLinks = 40

// resolve follows links, also those of folders on the way, as the kernel does in a chroot.
func (t Tree) resolve(name string) (Entry, error) {
	todo, done := strings.Split(path.Clean(name), "/"), "."
	for links := 0; len(todo) > 0; {
		next := path.Join(done, todo[0])
		e, found := t[next]
		switch {
		case todo[0] == "..":
			done, todo = path.Dir(done), todo[1:]
		case !found:
			return Entry{}, fmt.Errorf("/%s is missing", next)
		case e.Kind == tar.TypeLink:
			return t.resolve(e.Target)
		case e.Kind != tar.TypeSymlink:
			done, todo = next, todo[1:]
		default:
			if links++; links > maxLinks {
				return Entry{}, fmt.Errorf("/%s: too many links", name)
			}
			if path.IsAbs(e.Target) {
				done = "."
			}
			todo = append(strings.Split(strings.TrimPrefix(path.Clean(e.Target), "/"), "/"), todo[1:]...)
		}
	}
	return t[done], nil
}
