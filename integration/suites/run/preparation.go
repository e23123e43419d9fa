package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/program"
	"gridproxy/integration/suites"
)

// prerequisite is what a need takes: a group of Debian packages, and a Go module from which
// ensureTool builds the tool of that name, with modFile in the place of its go.mod. "" = none.
type prerequisite struct{ group, module, modFile string }

func prerequisiteOf(n suites.Need) prerequisite {
	return map[suites.Need]prerequisite{
		suites.IPTables:          {group: "iptables"},
		suites.ControlPlane:      {module: "tools/kubernetes"},
		suites.OlderControlPlane: {module: "tools/kubernetes", modFile: "go-1.36.mod"},
		suites.NodeRuntime:       {group: "machines", module: "tools/node"},
		suites.SuperEdge:         {module: "tools/superedge"},
		suites.Helm:              {module: "tools/deploy"},
		suites.Flux:              {module: "tools/deploy", modFile: "flux.mod"},
		suites.CoreDNS:           {module: "agreement"},
		suites.Machine61:         {group: "qemu"},
		suites.Machine612:        {group: "qemu"},
		suites.Buildah:           {group: "buildah"},
		suites.Strace:            {group: "strace"},
		suites.Systemd:           {group: "systemd"},
		suites.Codespell:         {group: "codespell"},
		suites.Prometheus:        {group: "prometheus"},
		suites.GCC:               {group: "gcc"},
	}[n]
}

// unavailableError wraps the error of what cannot be installed on this machine. That is no fault of
// the code under test.
type unavailableError struct{ error }

// preparation installs and builds everything once, when the first suite asks for it.
type preparation struct {
	root       string
	started    []string // folders of the programs that tests of all chosen suites start
	background sync.WaitGroup
	mu         sync.Mutex
	prepared   map[string]func() (path string, err error)
}

func newPreparation(root string) *preparation {
	return &preparation{root: root, prepared: map[string]func() (string, error){}}
}

// all prepares what suites have in common: it installs their Debian packages, compiles what their
// tests import, and begins to download the modules of the tools. A suite that needs what fails here
// tries it again and reports the error.
func (p *preparation) all(ctx context.Context, chosen []suites.Suite) {
	var modules []prerequisite
	packages := map[versions][]string{}
	for _, s := range chosen {
		v := versions{s.Module, strings.Join(s.BuildFlags(), " ")}
		packages[v] = append(packages[v], s.Packages...)
		for _, folder := range s.Starts {
			p.started = append(p.started, path.Clean(folder))
		}
		for _, n := range s.AllNeeds() {
			r := prerequisiteOf(n)
			if m := (prerequisite{module: r.module, modFile: r.modFile}); m.module != "" && !slices.Contains(modules, m) {
				modules = append(modules, m)
			}
		}
	}
	p.background.Go(func() {
		for _, m := range modules {
			_ = command(ctx, filepath.Join(p.root, "integration", m.module), "go", "mod", "download", "-modfile="+cmp.Or(m.modFile, "go.mod")).Run()
		}
	})
	for _, s := range chosen {
		for _, n := range s.AllNeeds() {
			_ = p.install(ctx, prerequisiteOf(n).group)
		}
	}
	p.compile(ctx, packages)
}

// versions decides which versions of packages the go command takes.
type versions struct{ module, flags string }

// compile compiles what tests import, by modules, so that suites that run side by side do not
// compile the same packages. Nothing is linked.
func (p *preparation) compile(ctx context.Context, packages map[versions][]string) {
	fmt.Println("== compiling what the tests import: a few minutes the first time")
	begin, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		for v, list := range packages {
			args := slices.Concat([]string{"list", "-export", "-deps", "-test", "-e", "-f", ""}, strings.Fields(v.flags), list)
			_ = command(ctx, filepath.Join(p.root, v.module), "go", args...).Run()
		}
	}()
	tick := time.NewTicker(progressPeriod / 2)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			fmt.Printf("   still compiling, %s\n", suites.Seconds(time.Since(begin)))
		}
	}
}

// ensure installs and builds what a suite needs, and returns the variables that say where it is.
func (p *preparation) ensure(ctx context.Context, s suites.Suite) ([]string, error) {
	environment := []string{program.Variable + "=" + p.programs()}
	var errs []error
	for _, n := range s.AllNeeds() {
		path, err := p.need(ctx, n)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s needs %s: %w", s.Name, n, err))
		}
		if n == suites.ControlPlane && s.Kernel != "" {
			environment = append(environment, "GRIDPROXY_KUBE_PROXY="+filepath.Join(path, "kube-proxy"))
		}
	}
	return environment, errors.Join(append(errs, p.link(ctx, s))...)
}

// programs returns the folder of the programs that tests start.
func (p *preparation) programs() string { return filepath.Join(p.root, "bin", "programs") }

// link builds the programs that tests start, all at once, and the tests of a suite with one
// package.
func (p *preparation) link(ctx context.Context, s suites.Suite) error {
	if len(s.Starts) > 0 {
		if _, err := p.once("programs", func() (string, error) {
			return "", program.Build(ctx, p.programs(), p.started...)
		}); err != nil {
			return err
		}
	}
	if s.TestBinary() == "" {
		return nil
	}
	_, err := p.once(s.TestBinary(), func() (string, error) {
		if err := os.MkdirAll(filepath.Dir(testBinary(p.root, s)), 0o755); err != nil {
			return "", fmt.Errorf("making a folder for tests: %w", err)
		}
		args := slices.Concat([]string{"test", "-c", "-vet=off", "-o", testBinary(p.root, s)}, s.BuildFlags(), s.Packages)
		out, err := command(ctx, filepath.Join(p.root, s.Module), "go", args...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("building the tests of %s: %w: %s", s.Packages[0], err, bytes.TrimSpace(out))
		}
		return "", nil
	})
	return err
}

func testBinary(root string, s suites.Suite) string {
	return filepath.Join(root, "bin", "tests", s.TestBinary())
}

// need installs and builds what a need takes. It returns the folder of what was built, if any.
func (p *preparation) need(ctx context.Context, n suites.Need) (string, error) {
	required := prerequisiteOf(n)
	if required == (prerequisite{}) {
		return "", errors.New("the runner does not know this need: add it to prerequisiteOf")
	}
	if err := p.install(ctx, required.group); err != nil {
		return "", err
	}
	if required.module != "" {
		return p.once(string(n), func() (string, error) {
			return p.goRun(ctx, "./integration/suites/run", "-ensure", string(n))
		})
	}
	series, found := strings.CutPrefix(string(n), "kernel-")
	if !found {
		return "", nil
	}
	return p.once(string(n), func() (string, error) {
		path, err := p.goRun(ctx, "./integration/env/vm", "-kernel", series, "-fetch")
		if err != nil {
			err = unavailableError{err}
		}
		return path, err
	})
}

// once does something, unless it has been done or is being done: then it waits for that.
func (p *preparation) once(key string, do func() (string, error)) (string, error) {
	p.mu.Lock()
	prepare, found := p.prepared[key]
	if !found {
		prepare = sync.OnceValues(do)
		p.prepared[key] = prepare
	}
	p.mu.Unlock()
	return prepare()
}

// install installs a group of Debian packages; "" stands for no group.
func (p *preparation) install(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	_, err := p.once("packages "+name, func() (string, error) {
		group, err := need.FindGroup(name)
		if err != nil {
			return "", err
		}
		if err := group.Install(ctx, os.Stdout); err != nil {
			return "", unavailableError{err}
		}
		return "", nil
	})
	return err
}

// maxDiag bounds what an error repeats of the output of a command, in bytes.
const maxDiag = 4096

// goRun runs a command of this repository and returns what it prints. Its progress is printed.
func (p *preparation) goRun(ctx context.Context, pkg string, args ...string) (string, error) {
	var diag bytes.Buffer
	cmd := command(ctx, p.root, "go", append([]string{"run", pkg}, args...)...)
	cmd.Stderr = io.MultiWriter(os.Stdout, &diag)
	out, err := cmd.Output()
	if err != nil {
		last := diag.Bytes()[max(0, diag.Len()-maxDiag):]
		return "", fmt.Errorf("%s %s: %w: %s", pkg, strings.Join(args, " "), err, bytes.TrimSpace(last))
	}
	return strings.TrimSpace(string(out)), nil
}
