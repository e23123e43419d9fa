package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/env/program"
)

// guestVariable is set in the guest, to the kernel's release.
const guestVariable = "GRIDPROXY_GUEST"

// kubeProxyVariable names the real kube-proxy, which goes into the guest too.
const kubeProxyVariable = "GRIDPROXY_KUBE_PROXY"

// grace is how long after its own time limit a test binary may still live. It is shorter than go
// test's (one minute), so that it is us who say what happened.
const grace = 40 * time.Second

// writing are the flags of a test binary that ask for a file, which would be lost with the guest.
var writing = [...]string{
	"-test.blockprofile", "-test.coverprofile", "-test.cpuprofile", "-test.fuzzcachedir",
	"-test.gocoverdir", "-test.memprofile", "-test.mutexprofile", "-test.trace",
}

// runGuest runs a program of this machine in a guest that is as m says so far, and returns its exit
// code.
func runGuest(ctx context.Context, series string, m Machine, args []string) (int, error) {
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		if slices.Contains(writing[:], name) {
			return 0, fmt.Errorf("%s: files do not come back from the guest: leave that flag away", name)
		}
	}
	k, err := EnsureKernel(ctx, series, os.Stderr)
	if err != nil {
		return 0, err
	}
	config, err := newConfig(k, args)
	if err != nil {
		return 0, err
	}
	file, err := pack(k, config)
	if err != nil {
		return 0, fmt.Errorf("packing the guest: %w", err)
	}
	defer file.Close()
	if limit := timeLimit(args); limit > 0 {
		limit += grace
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("the program did not end within %s", limit))
		defer cancel()
	}
	m.Kernel, m.Image, m.Config, m.KVM = k.Image, file, config, HasKVM()
	return m.Run(ctx, os.Stdout)
}

func newConfig(k Kernel, args []string) (guestConfig, error) {
	binary, err := filepath.Abs(args[0])
	if err == nil {
		binary, err = filepath.EvalSymlinks(binary) // only real folders are in the guest
	}
	if err != nil {
		return guestConfig{}, fmt.Errorf("finding %s: %w", args[0], err)
	}
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return guestConfig{}, fmt.Errorf("finding the folder that this runs in: %w", err)
	}
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "TERM=dumb", "PWD=" + dir, guestVariable + "=" + k.Release,
	}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "GRIDPROXY_") || strings.HasPrefix(v, "REQUIRE=") || strings.HasPrefix(v, "GO") {
			env = append(env, v)
		}
	}
	return guestConfig{Args: append([]string{binary}, args[1:]...), Dir: dir, Env: env, Mark: rand.Text()}, nil
}

// pack writes the archive into a file without a name.
func pack(k Kernel, config guestConfig) (_ *os.File, err error) {
	file, err := unnamedFile()
	if err != nil {
		return nil, fmt.Errorf("making a file for the archive: %w", err)
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	archive := NewArchive(file)
	if err := fill(archive, k, config); err != nil {
		return nil, errors.Join(err, archive.Close())
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("going back to the begin of the archive: %w", err)
	}
	return file, nil
}

func fill(archive *Archive, k Kernel, config guestConfig) error {
	i, err := BaseImage(archive)
	if err != nil {
		return err
	}
	modules, err := k.Files()
	if err != nil {
		return err
	}
	// The kernel's folders may lie below lib or usr/lib; the guest's /lib leads to either.
	to := "/usr/lib/modules/" + k.Release
	for _, m := range modules {
		i.File(to+strings.TrimPrefix(m, k.Modules), m)
	}
	content, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("writing what to run: %w", err)
	}
	i.Bytes(guestConfigPath, 0o600, content)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding vmexec itself: %w", err)
	}
	i.File("/init", self)
	i.Dir(config.Dir)
	for _, p := range append(carried(), config.Args[0]) {
		if err := i.Program(p); err != nil {
			return err
		}
	}
	return i.Tree(filepath.Join(config.Dir, "testdata"))
}

// carried returns the paths of the programs that go into the guest too, for tests to start.
func carried() []string {
	var programs []string
	if dir := os.Getenv(program.Variable); dir != "" {
		for _, folder := range []string{program.Gridproxy, program.GridDNS} {
			programs = append(programs, filepath.Join(dir, filepath.Base(folder)))
		}
	}
	if kubeProxy := os.Getenv(kubeProxyVariable); kubeProxy != "" {
		programs = append(programs, kubeProxy)
	}
	return programs
}

// timeLimit is what -test.timeout says; 0 if nothing.
func timeLimit(args []string) time.Duration {
	for _, a := range args {
		if value, found := strings.CutPrefix(a, "-test.timeout="); found {
			if d, err := time.ParseDuration(value); err == nil {
				return d
			}
		}
	}
	return 0
}
