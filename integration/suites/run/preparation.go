package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gridproxy/integration/debian"
	"gridproxy/integration/suites"
)

// supplies say what a need takes: groups of Debian packages, Go modules to download, and programs
// that integration/controlplane/ensure builds.
var supplies = map[suites.Need]struct{ group, module, tool string }{
	suites.IPTables:     {group: "iptables"},
	suites.ControlPlane: {module: "kcp", tool: "control-plane"},
	suites.NodeRuntime:  {group: "machines", module: "noderuntime", tool: "node-runtime"},
	suites.SuperEdge:    {module: "superedge", tool: "superedge"},
	suites.Helm:         {module: "helm", tool: "helm"},
	suites.Machine61:    {group: "qemu"},
	suites.Machine612:   {group: "qemu"},
	suites.Buildah:      {group: "buildah"},
	suites.Codespell:    {group: "codespell"},
}

// preparation installs and builds each need once, when the first suite asks for it.
type preparation struct {
	root string
	mu   sync.Mutex
	met  map[suites.Need]func() (path string, err error)
}

func newPreparation(root string) *preparation {
	return &preparation{root: root, met: map[suites.Need]func() (string, error){}}
}

// prepareAll installs what the suites need of Debian, and begins to download their Go modules: both
// take the network and no processor. A package that cannot be installed is reported by the suite
// that needs it.
func (r *runner) prepareAll(ctx context.Context, chosen []suites.Suite) {
	var needs []suites.Need
	modules := []string{"."}
	for _, s := range chosen {
		needs = append(needs, s.AllNeeds()...)
		if s.Module != "" {
			modules = append(modules, s.Module)
		}
	}
	slices.Sort(needs)
	needs = slices.Compact(needs)
	for _, n := range needs {
		if m := supplies[n].module; m != "" {
			modules = append(modules, filepath.Join("integration", m))
		}
	}
	go func() {
		for _, m := range modules {
			cmd := exec.CommandContext(ctx, "go", "mod", "download")
			cmd.Dir = filepath.Join(r.root, m)
			_ = cmd.Run() // what cannot be downloaded now is reported where it is compiled
		}
	}()
	for _, n := range needs {
		_ = install(ctx, supplies[n].group)
	}
}

// install installs a group of Debian packages; "" is none.
func install(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	group, err := debian.Find(name)
	if err != nil {
		return err
	}
	return group.Install(ctx, os.Stdout)
}

// ensure installs and builds what a suite needs, and returns the variables that tell its tests
// where it is.
func (p *preparation) ensure(ctx context.Context, s suites.Suite) ([]string, error) {
	var environment []string
	for _, n := range s.AllNeeds() {
		path, err := p.once(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%s needs %s: %w", s.Name, n, err)
		}
		switch {
		case n == suites.ControlPlane && s.Kernel != "":
			environment = append(environment, "GRIDPROXY_KUBE_PROXY="+filepath.Join(path, "kube-proxy"))
		case n == suites.Machine61 || n == suites.Machine612:
			environment = append(environment, "GRIDPROXY_BINARY="+filepath.Join(path, "gridproxy"))
		}
	}
	return environment, nil
}

// once meets a need, unless it has been met or is being met by another suite: then it waits for
// that.
func (p *preparation) once(ctx context.Context, n suites.Need) (string, error) {
	p.mu.Lock()
	meet, found := p.met[n]
	if !found {
		meet = sync.OnceValues(func() (string, error) { return p.meet(ctx, n) })
		p.met[n] = meet
	}
	p.mu.Unlock()
	return meet()
}

// meet returns the folder of what was built, if anything was.
func (p *preparation) meet(ctx context.Context, n suites.Need) (string, error) {
	supply, found := supplies[n]
	if !found {
		return "", fmt.Errorf("there is no such need: add it to supplies")
	}
	if err := install(ctx, supply.group); err != nil {
		return "", err
	}
	if supply.tool != "" {
		return p.goRun(ctx, "./integration/controlplane/ensure", supply.tool)
	}
	if series, ok := strings.CutPrefix(string(n), "kernel-"); ok {
		return p.machine(ctx, series)
	}
	return "", nil
}

// machine fetches a kernel, and builds the programs with which tests run on it.
func (p *preparation) machine(ctx context.Context, series string) (string, error) {
	dir := filepath.Join(p.root, "bin", "vm")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a folder for programs: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", dir+"/", "./integration/vmexec", "./cmd/gridproxy")
	build.Dir = p.root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building vmexec and gridproxy: %w: %s", err, bytes.TrimSpace(out))
	}
	_, err := p.goRun(ctx, "./integration/vmexec", "-kernel", series, "-fetch")
	return dir, err
}

// goRun runs a command of this repository and returns what it prints. Its progress is printed.
func (p *preparation) goRun(ctx context.Context, pkg string, args ...string) (string, error) {
	var diag bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", append([]string{"run", pkg}, args...)...)
	cmd.Dir, cmd.Stderr = p.root, &tee{&diag}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", pkg, strings.Join(args, " "), err, bytes.TrimSpace(diag.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}

// tee prints what is written to it, and keeps the last maxDiag bytes.
type tee struct{ kept *bytes.Buffer }

const maxDiag = 4096

func (t *tee) Write(b []byte) (int, error) {
	t.kept.Write(b)
	if extra := t.kept.Len() - maxDiag; extra > 0 {
		t.kept.Next(extra)
	}
	return os.Stdout.Write(b)
}
