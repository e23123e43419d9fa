package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Version is the Kubernetes release that integration/kcp is built from. It is stamped into the
// binary, because clients that parse the version of an unstamped API server fail.
const Version = "v1.36.3"

// programs are the names that the binary can be called by and that are links to it. kube-proxy is one
// more, but that is also built alone: its memory is compared with ours, and it should not have to carry
// what the others bring.
var programs = [...]string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl",
}

// Tools is a folder that holds the built binary and a link for each program in it. It can serve as
// envtest's KUBEBUILDER_ASSETS.
type Tools struct{ Dir string }

// Path is the file to execute to run a program.
func (t Tools) Path(program string) string { return filepath.Join(t.Dir, program) }

// Ensure returns the tools, and builds them first if this machine does not have them: some 400 s on
// two cores, once. While it builds it reports to progress. Two processes that need them at the same
// time build once: the other waits.
func Ensure(ctx context.Context, progress io.Writer) (Tools, error) {
	build, err := newBuild(ctx)
	if err != nil {
		return Tools{}, fmt.Errorf("preparing the build of the control plane: %w", err)
	}
	if build.done() {
		return build.tools, nil
	}
	if err := build.run(ctx, progress); err != nil {
		return Tools{}, fmt.Errorf("building the control plane in %s: %w", build.source, err)
	}
	return build.tools, nil
}

// build is one way to make the tools: what goes in, and where the result belongs.
type build struct {
	source string   // folder of integration/kcp
	flags  []string // of go build
	tools  Tools
}

func newBuild(ctx context.Context) (build, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return build{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return build{}, fmt.Errorf("finding the cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	b := build{source: filepath.Join(root, "integration", "kcp"), flags: buildFlags()}
	sum, err := b.hash(ctx)
	if err != nil {
		return build{}, err
	}
	b.tools.Dir = filepath.Join(cache, "gridproxy", "tools", sum)
	return b, nil
}

// buildFlags stamps the version the way that Kubernetes' own build does, into both of the packages
// that carry it.
func buildFlags() []string {
	number := strings.Split(strings.TrimPrefix(Version, "v"), ".")
	stamps := [][2]string{
		{"gitVersion", Version}, {"gitMajor", number[0]}, {"gitMinor", number[1]}, {"gitTreeState", "archive"},
	}
	link := "-s -w"
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, s := range stamps {
			link += fmt.Sprintf(" -X %s.%s=%s", pkg, s[0], s[1])
		}
	}
	return []string{"-trimpath", "-ldflags", link}
}

// hash is over everything that decides the binary's contents.
func (b build) hash(ctx context.Context) (string, error) {
	h := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		content, err := os.ReadFile(filepath.Join(b.source, name))
		if err != nil {
			return "", fmt.Errorf("reading the sources of the control plane: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
	}
	toolchain, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return "", fmt.Errorf("asking for Go's version: %w", err)
	}
	fmt.Fprintf(h, "%s%s/%s %q %q", toolchain, runtime.GOOS, runtime.GOARCH, b.flags, programs)
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func (b build) done() bool {
	_, err := os.Stat(b.tools.Path(programs[len(programs)-1]))
	return err == nil
}

// run builds into a folder beside the final one and renames it, so that a folder of the final name
// is always complete.
func (b build) run(ctx context.Context, progress io.Writer) error {
	parent := filepath.Dir(b.tools.Dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lockFile(ctx, b.tools.Dir+".lock", progress)
	if err != nil {
		return err
	}
	defer unlock()
	if b.done() {
		return nil
	}
	temp, err := os.MkdirTemp(parent, "building-")
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(temp)
	fmt.Fprintf(progress, "building etcd and Kubernetes %s once, for %s (about 7 minutes on two cores)\n", Version, b.tools.Dir)
	for _, target := range [][2]string{{"kcp", "."}, {"kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"}} {
		if err := b.compile(ctx, target[1], filepath.Join(temp, target[0]), progress); err != nil {
			return err
		}
	}
	for _, name := range programs {
		if err := os.Symlink("kcp", filepath.Join(temp, name)); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("opening the folder to all users: %w", err)
	}
	if err := os.Rename(temp, b.tools.Dir); err != nil {
		return fmt.Errorf("putting the tools in place: %w", err)
	}
	return nil
}

// compile runs go build, which names each package as it compiles it; that is the progress.
func (b build) compile(ctx context.Context, pkg, output string, progress io.Writer) error {
	start := time.Now()
	args := append([]string{"build", "-v", "-o", output}, b.flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = b.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("reading the output of go build: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting go build: %w", err)
	}
	said := follow(pipe, progress, start)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, said)
	}
	fmt.Fprintf(progress, "built %s in %s\n", filepath.Base(output), time.Since(start).Round(time.Second))
	return nil
}

// follow counts the packages that go build names, tells progress every ten seconds, and returns what
// else was said.
func follow(output io.Reader, progress io.Writer, start time.Time) string {
	var said bytes.Buffer
	packages, next := 0, start.Add(10*time.Second)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), " ") {
			said.WriteString(lines.Text() + "\n")
			continue
		}
		packages++
		if now := time.Now(); now.After(next) {
			fmt.Fprintf(progress, "  %4d packages of about 1500, %s\n", packages, now.Sub(start).Round(time.Second))
			next = now.Add(10 * time.Second)
		}
	}
	return said.String()
}

// lockFile takes an exclusive lock that the kernel drops when the process ends.
func lockFile(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the build: %w", err)
	}
	told := false
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if !told {
			fmt.Fprintf(progress, "waiting for another process that builds the same tools (lock %s)\n", path)
			told = true
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("waiting for %s: %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// moduleRoot is the folder of the module that the caller stands in.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("asking Go for the module (is go in PATH?): %w", err)
	}
	file := strings.TrimSpace(string(out))
	if file == "" || file == os.DevNull {
		return "", errors.New("not inside a Go module: run this in gridproxy's source tree")
	}
	return filepath.Dir(file), nil
}
