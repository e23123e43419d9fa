package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gridproxy/deploy/image/tree"
	"gridproxy/integration/env/need"

	"github.com/google/go-cmp/cmp"
)

// architecture is what each of the images must be for.
type architecture struct {
	platform string
	rootfs   string // as deploy/image/rootfs calls it
	machine  elf.Machine
	class    elf.Class
	goarch   string
	goarm    string
}

func architectures() []architecture {
	return []architecture{
		{"linux/amd64", "amd64", elf.EM_X86_64, elf.ELFCLASS64, "amd64", ""},
		{"linux/arm64", "arm64", elf.EM_AARCH64, elf.ELFCLASS64, "arm64", ""},
		{"linux/arm/v7", "armhf", elf.EM_ARM, elf.ELFCLASS32, "arm", "7"},
	}
}

func ours() []string {
	return []string{"usr/local/bin/gridproxy", "usr/local/bin/grid-controller", "usr/local/bin/grid-dns"}
}

// TestImage builds the manifest list as the README says for a machine without a registry, and looks
// into each of its images.
func TestImage(t *testing.T) {
	need.Root(t)
	need.Tools(t, "run `make image-test`, which installs it", "buildah", "debootstrap")
	b := newBuilder(t)
	b.run("deploy/image/build", "base")
	b.with("ARCH=all").run("deploy/image/build")
	folder := filepath.Join(t.TempDir(), "layout")
	b.run("buildah", "manifest", "push", "--quiet", "--all", name, "oci:"+folder)
	all, err := layout{folder}.images()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, i := range all {
		platforms = append(platforms, i.String())
	}
	var want []string
	for _, a := range architectures() {
		want = append(want, a.platform)
	}
	slices.Sort(platforms)
	slices.Sort(want)
	if diff := cmp.Diff(want, platforms); diff != "" {
		t.Fatalf("platforms of the list (-want +got):\n%s", diff)
	}
	for _, a := range architectures() {
		t.Run(a.platform, func(t *testing.T) {
			n := slices.IndexFunc(all, func(i image) bool { return i.String() == a.platform })
			i := all[n]
			t.Logf("%d files and folders, %.1f MB, %.1f MB to pull", len(i.files), float64(size(i.files))/1e6, float64(i.packed)/1e6)
			i.says(t, a)
			i.isFor(t, a)
			i.hasPrograms(t, a)
			i.hasNoMore(t, b, a)
			if a.goarch == runtime.GOARCH {
				i.starts(t)
			}
		})
	}
}

// says checks the configuration that a container runtime reads.
func (i image) says(t *testing.T, a architecture) {
	t.Helper()
	c := i.config.Config
	if i.config.OS != "linux" || i.config.Architecture != a.goarch {
		t.Errorf("the image says that it is for %s", i.config.platform)
	}
	if !slices.Equal(c.Entrypoint, []string{"gridproxy"}) || !slices.Equal(c.Cmd, []string{"run"}) || c.User != "" {
		t.Errorf("entrypoint %q, command %q, user %q", c.Entrypoint, c.Cmd, c.User)
	}
	if diff := cmp.Diff([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}, c.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	for label, want := range map[string]string{"version": version, "revision": revision} {
		if got := c.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
}

// isFor checks that all code is for one machine, and that no user gains rights by a file.
func (i image) isFor(t *testing.T, a architecture) {
	t.Helper()
	n := 0
	for name, e := range i.files {
		if e.Mode&0o6000 != 0 {
			t.Errorf("/%s has mode %04o: whoever starts it becomes somebody else", name, e.Mode)
		}
		if !bytes.HasPrefix(e.Content, []byte(elf.ELFMAG)) {
			continue
		}
		n++
		f, err := elf.NewFile(bytes.NewReader(e.Content))
		if err != nil {
			t.Errorf("/%s: %v", name, err)
		} else if f.Machine != a.machine || f.Class != a.class {
			t.Errorf("/%s is code for %v, %v; want %v, %v", name, f.Machine, f.Class, a.machine, a.class)
		}
	}
	if n < 10 {
		t.Errorf("%d programs and libraries; want the three of ours, iptables' and kmod's", n)
	}
}

// hasPrograms checks that what the daemon calls is there, that our programs need no library, and
// that nothing runs a script.
func (i image) hasPrograms(t *testing.T, a architecture) {
	t.Helper()
	called := []string{"usr/sbin/modprobe"}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, variant := range []string{"-nft", "-legacy"} {
			for _, what := range []string{"", "-save", "-restore"} {
				called = append(called, "usr/sbin/"+family+variant+what)
			}
		}
	}
	for _, program := range append(called, ours()...) {
		e, err := i.files.Resolve(program)
		if err != nil || e.Kind != tar.TypeReg || e.Mode&0o111 != 0o111 || !bytes.HasPrefix(e.Content, []byte(elf.ELFMAG)) {
			t.Errorf("/%s is no program that all may start (%s): %v", program, describe(e), err)
			continue
		}
		if strings.HasPrefix(program, "usr/local/") {
			isStatic(t, program, e, a)
		}
	}
	shells := []string{"sh", "bash", "dash", "ash", "zsh", "busybox", "perl", "python3", "awk", "mawk", "env", "apt", "apt-get", "dpkg"}
	for name := range i.files {
		if slices.Contains(shells, path.Base(name)) && strings.Contains(path.Dir(name), "bin") {
			t.Errorf("/%s is in the image", name)
		}
	}
}

// isStatic checks that a program of ours was built as it is meant to be.
func isStatic(t *testing.T, program string, e tree.Entry, a architecture) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(e.Content))
	if err != nil {
		t.Error(err)
		return
	}
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) > 0 || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Errorf("/%s needs libraries: %v, %v", program, libraries, err)
	}
	info, err := buildinfo.Read(bytes.NewReader(e.Content))
	if err != nil {
		t.Errorf("/%s: %v", program, err)
		return
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	for key, want := range map[string]string{"GOARCH": a.goarch, "GOARM": a.goarm, "CGO_ENABLED": "0", "-trimpath": "true"} {
		if set[key] != want {
			t.Errorf("/%s was built with %s=%q, want %q", program, key, set[key], want)
		}
	}
}

// hasNoMore checks that the files are those that `make rootfs` writes without any container tool,
// and our programs.
func (i image) hasNoMore(t *testing.T, b builder, a architecture) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rootfs.tar")
	b.t = t
	b.run("go", append(append([]string{"run", "./deploy/image/rootfs"}, strings.Fields(os.Getenv("ROOTFS_FLAGS"))...), a.rootfs, file)...)
	archive, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	want, got := tree.Tree{}, maps.Clone(i.files)
	if err := addLayer(want, archive); err != nil {
		t.Fatal(err)
	}
	for _, program := range ours() {
		delete(got, program)
	}
	if diff := cmp.Diff(described(want), described(got)); diff != "" {
		t.Errorf("make rootfs, and the image without our programs (-make rootfs, +image):\n%s", diff)
	}
}

func described(t tree.Tree) map[string]string {
	all := map[string]string{}
	for name, e := range t {
		all[name] = describe(e)
	}
	return all
}
