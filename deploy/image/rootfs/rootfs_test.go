package main

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"

	"gridproxy/deploy/image/tree"
)

// fetched is a tree of real packages of the last point release, which are the same for
// weeks and kept in the user's cache folder.
func fetched(t *testing.T, name string) (Arch, []Package, tree.Tree) {
	t.Helper()
	need.Tools(t, "the packages are Debian's; on Debian: apt-get install apt dpkg", "apt-get", "dpkg-deb")
	arch, err := ParseArch(name)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	archive := Archive{
		Mirror: "http://deb.debian.org/debian", Suite: "bookworm", Keyring: "/usr/share/keyrings/debian-archive-keyring.gpg",
		Cache: filepath.Join(cache, "gridproxy", "debian"), MaxAge: 30 * 24 * time.Hour,
	}
	_, err = os.Stat(archive.Keyring)
	need.That(t, err == nil, "the keys of Debian's archive are missing: apt-get install debian-archive-keyring")
	packages, err := archive.Fetch(t.Context(), arch, wanted...)
	if err != nil {
		t.Fatal(err)
	}
	root, err := Build(t.Context(), packages)
	if err != nil {
		t.Fatal(err)
	}
	return arch, packages, root
}

func tarOf(t *testing.T, root tree.Tree) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := root.WriteTar(&b, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestArchitectures: for each the tar has all that gridproxy calls, and is made twice with
// the same bytes.
func TestArchitectures(t *testing.T) {
	for _, name := range []string{"amd64", "arm64", "armhf"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arch, packages, root := fetched(t, name)
			if err := check(root, arch, programs()); err != nil {
				t.Error(err)
			}
			first := tarOf(t, root)
			again, err := Build(t.Context(), packages)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, tarOf(t, again)) {
				t.Error("two runs with the same packages gave different bytes")
			}
			for _, unwelcome := range []string{"usr/bin/sh", "usr/bin/mawk", "usr/share/man", "usr/share/locale"} {
				if _, found := root[unwelcome]; found {
					t.Errorf("/%s is in the image", unwelcome)
				}
			}
			t.Logf("%s: %d packages, %d files and folders, %.1f MB", name, len(packages), len(root), float64(len(first))/1e6)
		})
	}
}

// TestCheckFinds: each fault is named. The tree is real, so that a check that looked for
// nothing would be noticed.
func TestCheckFinds(t *testing.T) {
	arch, _, root := fetched(t, "amd64")
	_, _, foreign := fetched(t, "armhf")
	for _, c := range []struct {
		name  string
		spoil func(tree.Tree)
		want  string
	}{
		{"a program", func(t tree.Tree) { delete(t, "usr/sbin/ip6tables-legacy-restore") }, "usr/sbin/ip6tables-legacy-restore is missing"},
		{"what a program links to", func(t tree.Tree) { delete(t, "usr/sbin/xtables-nft-multi") }, "program usr/sbin/iptables-nft-save"},
		{"a library", func(t tree.Tree) { delete(t, "usr/lib/x86_64-linux-gnu/libmnl.so.0.2.0") }, "the library libmnl.so.0 that it needs is missing"},
		{"a library of a library", func(t tree.Tree) { delete(t, "usr/lib/x86_64-linux-gnu/libcrypto.so.3") }, "libcrypto.so.3"},
		{"the loader", func(t tree.Tree) { delete(t, "usr/lib64/ld-linux-x86-64.so.2") }, "its loader"},
		{"a merged folder", func(t tree.Tree) { delete(t, "lib64") }, "/lib64 is missing"},
		{"another machine's code", func(t tree.Tree) { t["usr/bin/kmod"] = foreign["usr/bin/kmod"] }, "it is for EM_ARM"},
		{"rights", func(t tree.Tree) { e := t["usr/bin/kmod"]; e.Mode = 0o644; t["usr/bin/kmod"] = e }, "no program that all may execute"},
		{"a link in a ring", func(t tree.Tree) { t.Link("etc/a", "b"); t.Link("etc/b", "a") }, "too many links"},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := maps.Clone(root)
			c.spoil(broken)
			err := check(broken, arch, programs())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check says %v; want something with %q", err, c.want)
			}
		})
	}
}

// TestProgramsRun: in the tree, as in a container, both variants read and write rules of
// both families, in a network namespace that goes with the process.
func TestProgramsRun(t *testing.T) {
	need.IPTables(t)
	need.Tools(t, "apt-get install util-linux mount tar", "unshare", "mount", "chroot")
	_, _, files := fetched(t, runtime.GOARCH)
	root := t.TempDir()
	extract(t, tarOf(t, files), root)

	const rules = "*nat\n:X - [0:0]\n-A X -p tcp -m comment --comment image -m addrtype --dst-type LOCAL -m statistic --mode random --probability 0.5 -j RETURN\nCOMMIT\n"
	const script = `mount -t proc proc "$0/proc"
for v in nft legacy; do for f in iptables ip6tables; do
  printf "$1" | chroot "$0" $f-$v-restore -w 5 --noflush
  echo "$f-$v:"; chroot "$0" $f-$v-save
done; done
chroot "$0" modprobe --version; chroot "$0" iptables --version`
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "unshare", "--mount", "--net", "sh", "-euc", script, root, rules).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := strings.Count(string(out), "--comment image"); n != 4 {
		t.Errorf("%d of 4 rules were written and read: %s", n, out)
	}
	for _, want := range []string{"kmod version", "(nf_tables)"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in: %s", want, out)
		}
	}
}

// extract unpacks a tar of ours.
func extract(t *testing.T, content []byte, root string) {
	t.Helper()
	cmd := exec.Command("tar", "-C", root, "-xpf", "-")
	cmd.Stdin = bytes.NewReader(content)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("unpacking: %v: %s", err, out)
	}
}

// TestPackagesThatDiffer: a file of two packages is an error, unless it is the same in both.
func TestPackagesThatDiffer(t *testing.T) {
	root := tree.Tree{}
	pack := func(name, content string) io.Reader {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	for _, c := range []struct{ name, content, want string }{
		{"./lib/a", "1", ""},
		{"./usr/lib/a", "1", ""}, // /lib is in /usr
		{"./usr/lib/a", "2", "in two packages"},
		{"./usr/share/man/man8/a.8", "1", ""},
	} {
		err := readTar(root, pack(c.name, c.content))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
	if _, found := root["usr/share/man/man8/a.8"]; found || len(root) != 1 {
		t.Errorf("tree is %v; want usr/lib/a alone", root)
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"amd64"}, {"sparc", "x.tar"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("rootfs %v was accepted", args)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if err := run(t.Context(), []string{"amd64", "x.tar"}, io.Discard); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("SOURCE_DATE_EPOCH=yesterday: %v", err)
	}
}
