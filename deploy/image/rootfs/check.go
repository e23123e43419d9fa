package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"strings"

	"gridproxy/deploy/image/tree"
)

// check returns an error that joins everything by which a program of the tree would not start:
// programs that are missing, links to nowhere, code for another machine, libraries that are
// missing. programs are names in /usr/sbin.
func check(t tree.Tree, arch Arch, programs []string) error {
	var wrong []error
	for _, p := range programs {
		name := path.Join("usr/sbin", p)
		e, err := t.Resolve(name)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("program %s: %w", name, err))
		case e.Kind != tar.TypeReg || e.Mode&0o111 != 0o111 || !bytes.HasPrefix(e.Content, []byte(elf.ELFMAG)):
			wrong = append(wrong, fmt.Errorf("%s is no program that all may execute", name))
		}
	}
	for _, name := range t.Names() {
		e := t[name]
		switch {
		case e.Kind == tar.TypeSymlink || e.Kind == tar.TypeLink:
			if _, err := t.Resolve(name); err != nil {
				wrong = append(wrong, fmt.Errorf("link %s: %w", name, err))
			}
		case bytes.HasPrefix(e.Content, []byte(elf.ELFMAG)):
			if err := checkCode(t, e, arch); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(wrong...)
}

// checkCode returns an error unless e is code for arch and the tree has all libraries it names.
func checkCode(t tree.Tree, e tree.Entry, arch Arch) error {
	f, err := elf.NewFile(bytes.NewReader(e.Content))
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if f.Machine != arch.Machine || f.Class != arch.Class {
		return fmt.Errorf("it is for %v, %v, not for %s", f.Machine, f.Class, arch.Debian)
	}
	var wrong []error
	if loader := interpreter(f); loader != "" {
		if _, err := t.Resolve(strings.TrimPrefix(loader, "/")); err != nil {
			wrong = append(wrong, fmt.Errorf("its loader: %w", err))
		}
	}
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("reading the libraries that it needs: %w", err)
	}
	for _, l := range libraries {
		_, inFolder := t.Resolve(path.Join("usr/lib", arch.Triplet, l))
		_, above := t.Resolve(path.Join("usr/lib", l))
		if inFolder != nil && above != nil {
			wrong = append(wrong, fmt.Errorf("the library %s that it needs is missing", l))
		}
	}
	return errors.Join(wrong...)
}

// interpreter returns the path of the dynamic loader that a program names; "" for a static one,
// and "unreadable" if it cannot be read.
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
