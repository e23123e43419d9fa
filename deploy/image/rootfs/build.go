package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"

	"gridproxy/deploy/image/tree"
)

// wanted lists the packages to install; apt adds their dependencies. base-files names the Debian
// release; kmod is for mode ipvs and iptables-legacy: the kernel loads every other module
// automatically.
var wanted = []string{"base-files", "iptables", "kmod"}

// notUnpacked is what these packages need only where scripts run: base-files wants an awk.
var notUnpacked = []string{"mawk"}

// unwanted are patterns of path.Match for what programs without users do not need: a file,
// or a folder with all that is in it.
var unwanted = []string{
	"etc/init.d",
	"etc/*.d/*", // for shells; modprobe's has nothing but comments
	"usr/share/doc/*/[^c]*", "usr/share/doc/*/changelog*",
	"usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "usr/share/bug", "usr/share/menu",
	"usr/share/bash-completion", "usr/share/initramfs-tools", "usr/share/base-files",
	"usr/lib/*/gconv", "usr/lib/*/audit", "usr/lib/*/engines-3", "usr/lib/*/ossl-modules",
	"usr/lib/*/libssl.so.3", // kmod reads the signatures of modules: libcrypto
	"usr/sbin/iptables-apply", "usr/sbin/ip6tables-apply",
	"var/lib/dpkg/info", "home", "var/backups", "var/mail", "var/spool", "var/local", "srv", "media", "opt", "mnt", "boot",
}

// programs returns the names of the programs that gridproxy calls, which are in /usr/sbin.
func programs() []string {
	names := []string{"modprobe"}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, variant := range []string{"nft", "legacy"} {
			for _, suffix := range []string{"", "-save", "-restore"} {
				names = append(names, family+"-"+variant+suffix)
			}
		}
	}
	return names
}

// Build merges packages into one tree and adds what their scripts would have made.
func Build(ctx context.Context, packages []Package) (tree.Tree, error) {
	root := skeleton()
	var status strings.Builder
	for _, p := range packages {
		if slices.Contains(notUnpacked, p.Name) {
			continue
		}
		if err := unpack(ctx, root, p); err != nil {
			return nil, fmt.Errorf("unpacking %s: %w", p.File, err)
		}
		control, err := exec.CommandContext(ctx, "dpkg-deb", "--field", p.File).Output()
		if err != nil {
			return nil, fmt.Errorf("reading what %s says of itself: %w", p.File, err)
		}
		fmt.Fprintf(&status, "%s\nStatus: install ok installed\n\n", bytes.TrimSpace(control))
	}
	// A scanner of images finds the packages and their versions here.
	root.File("var/lib/dpkg/status", status.String())
	return root, nil
}

// skeleton returns a tree with what no package has: mount points, the folders /bin, /lib and so
// on as symbolic links as Debian has them since 2023, and the names without a variant, which
// update-alternatives makes.
func skeleton() tree.Tree {
	root := tree.Tree{}
	for _, d := range []string{"dev", "etc", "proc", "run", "sys", "usr/lib/modules", "usr/local/bin", "var/lib/dpkg"} {
		root.Folder(d, 0o755)
	}
	root.Folder("root", 0o700)
	root.Folder("tmp", 0o1777)
	for _, d := range merged {
		root.Folder("usr/"+d, 0o755)
		root.Link(d, "usr/"+d)
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			root.Link("usr/sbin/"+family+suffix, family+"-nft"+suffix)
		}
	}
	root.File("etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")
	root.File("etc/group", "root:x:0:\nnogroup:x:65534:\n")
	return root
}

// merged are the folders that are symbolic links into /usr.
var merged = []string{"bin", "sbin", "lib", "lib64"}

// unpack adds the files of a package to root, without those that are unwanted.
func unpack(ctx context.Context, root tree.Tree, p Package) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", p.File)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	errRead := readTar(root, out)
	_, errDrain := io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil || errRead != nil || errDrain != nil {
		return errors.Join(errRead, errDrain, err, context.Cause(ctx), nonEmpty(stderr.String()))
	}
	return nil
}

func nonEmpty(printed string) error {
	if printed == "" {
		return nil
	}
	return errors.New(strings.TrimSpace(printed))
}

// readTar adds what is in the tar of a package to root, without what is unwanted.
func readTar(root tree.Tree, r io.Reader) error {
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := inUsr(h.Name)
		if name == "." || isUnwanted(name) {
			continue
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		e := tree.Entry{Mode: fs.FileMode(h.Mode), Kind: h.Typeflag, Target: h.Linkname, Content: content}
		if e.Kind == tar.TypeLink {
			e.Target = inUsr(h.Linkname)
		}
		if err := root.Add(name, e); err != nil {
			return err
		}
	}
}

// inUsr returns the path of a file in a tree where /bin, /lib and so on are in /usr, without a
// leading slash; "." for the root.
func inUsr(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	first, _, _ := strings.Cut(name, "/")
	if slices.Contains(merged, first) {
		return "usr/" + name
	}
	if name == "" {
		return "."
	}
	return name
}

func isUnwanted(name string) bool {
	for n := name; n != "."; n = path.Dir(n) {
		for _, pattern := range unwanted {
			if ok, err := path.Match(pattern, n); ok && err == nil {
				return true
			}
		}
	}
	return false
}
