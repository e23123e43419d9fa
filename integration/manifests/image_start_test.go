package main

import (
	"archive/tar"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/deploy/image/tree"
)

// starts runs programs of the image as in a container: in its files, with its environment and entrypoint, without a network.
func (i image) starts(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	write(t, i.files, root)
	ask := func(want []string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "unshare", append([]string{"--net", "--mount", "--root", root, "--"}, args...)...)
		cmd.Env = i.config.Config.Env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
			return
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%s prints %q, without %q", strings.Join(args, " "), out, w)
			}
		}
		line, _, _ := strings.Cut(string(out), "\n")
		t.Logf("%s: %s", strings.Join(args, " "), line)
	}
	entrypoint := i.config.Config.Entrypoint
	ask([]string{version, revision}, append(slices.Clone(entrypoint), "version")...)
	ask([]string{"--init-only", "--node-name"}, append(append(slices.Clone(entrypoint), i.config.Config.Cmd...), "--help")...)
	for _, program := range []string{"grid-controller", "grid-dns"} {
		ask([]string{version, revision}, program, "version")
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		ask([]string{family + " v", "(nf_tables)"}, family+"-nft", "--version")
		ask([]string{family + " v", "(legacy)"}, family+"-legacy", "--version")
	}
	ask([]string{"kmod version"}, "modprobe", "--version")
}

func write(t *testing.T, files tree.Tree, root string) {
	t.Helper()
	for _, name := range files.Names() {
		e, file := files[name], filepath.Join(root, name)
		var err error
		switch e.Kind {
		case tar.TypeDir:
			err = os.Mkdir(file, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(e.Target, file)
		case tar.TypeReg:
			err = os.WriteFile(file, e.Content, e.Mode&0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
