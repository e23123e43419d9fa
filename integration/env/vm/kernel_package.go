package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// debianPackage is one version of a package in the archive.
type debianPackage struct{ name, file string }

// newest is the package that a meta package depends on.
func newest(ctx context.Context, meta string) (debianPackage, error) {
	shown, err := runTool(ctx, "", "apt-cache", "show", "--no-all-versions", meta)
	if err != nil {
		return debianPackage{}, err
	}
	p := debianPackage{name: dependency(shown)}
	if p.name == "" {
		return debianPackage{}, fmt.Errorf("package %s depends on no kernel", meta)
	}
	// One line: 'address' file size hash.
	address, err := runTool(ctx, "", "apt-get", "download", "--print-uris", p.name)
	if err != nil {
		return debianPackage{}, err
	}
	fields := strings.Fields(address)
	if len(fields) < 2 || filepath.Base(fields[1]) != fields[1] || !strings.HasSuffix(fields[1], ".deb") {
		return debianPackage{}, fmt.Errorf("apt-get download --print-uris %s: no file name in %q", p.name, address)
	}
	p.file = fields[1]
	return p, nil
}

// dependency is the first package in the field Depends of what apt-cache shows; "" if it has none.
func dependency(shown string) string {
	for line := range strings.Lines(shown) {
		if list, found := strings.CutPrefix(line, "Depends:"); found {
			for _, name := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(" ,(|\n", r) }) {
				return name
			}
		}
	}
	return ""
}

// fetch unpacks a package into dir, with its modules uncompressed and indexed: loading a compressed
// one takes long where the processor is emulated. apt-get checks what it downloads against the archive's
// signature.
func fetch(ctx context.Context, p debianPackage, dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	temp, err := os.MkdirTemp(parent, "fetching-")
	if err != nil {
		return fmt.Errorf("making a folder to unpack in: %w", err)
	}
	defer os.RemoveAll(temp)
	if _, err := runTool(ctx, temp, "apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", p.name); err != nil {
		return fmt.Errorf("%w (is the list of packages old? run `apt-get update`)", err)
	}
	tree := filepath.Join(temp, "tree")
	if _, err := runTool(ctx, temp, "dpkg-deb", "-x", filepath.Join(temp, p.file), tree); err != nil {
		return err
	}
	if err := indexModules(ctx, tree); err != nil {
		return err
	}
	if err := os.Rename(tree, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return nil // another process was faster; its folder is the same
		}
		return fmt.Errorf("putting the kernel in place: %w", err)
	}
	return nil
}

// indexModules uncompresses the modules of an unpacked package and writes modules.dep and the other
// files by which modprobe finds them; installing the package would do so.
func indexModules(ctx context.Context, tree string) error {
	var compressed []string
	err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".ko.xz") {
			compressed = append(compressed, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("looking for modules: %w", err)
	}
	if len(compressed) > 0 {
		if _, err := runTool(ctx, tree, "xz", append([]string{"-d", "-q", "--"}, compressed...)...); err != nil {
			return err
		}
	}
	k, err := findRelease(tree)
	if err != nil {
		return err
	}
	_, err = runTool(ctx, tree, "depmod", "-b", k.base, k.release)
	return err
}

// moduleTree is where depmod finds the modules of a release.
type moduleTree struct{ base, release string }

func findRelease(tree string) (moduleTree, error) {
	for _, base := range []string{tree, filepath.Join(tree, "usr")} {
		if dirs, _ := filepath.Glob(filepath.Join(base, "lib", "modules", "*")); len(dirs) == 1 {
			return moduleTree{base: base, release: filepath.Base(dirs[0])}, nil
		}
	}
	return moduleTree{}, fmt.Errorf("the package has no folder lib/modules/RELEASE")
}

// runTool runs a program in a folder and returns what it wrote to standard output.
func runTool(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &diag
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", name, args[0], err, bytes.TrimSpace(diag.Bytes()))
	}
	return out.String(), nil
}
