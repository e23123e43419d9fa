package apiserver

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
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// build is one way to make programs out of a nested module of integration.
type build struct {
	what    string   // for people, with how long it takes
	module  string   // its folder in integration
	files   []string // of the module; with flags and links they decide what comes out
	flags   []string // of go build, for every target
	targets []target
	links   []string // names that are links to the first target
	// extra adds to the folder what is no program; nil adds nothing.
	extra func(ctx context.Context, source, dir string) error
}

// target is a program and the package that it is built from. More than that is counted in the hash only
// where it is there, so that the folders of older builds are found again.
type target struct {
	name, pkg string
	cgo       bool
	flags     []string // of go build, after the others: the last of a kind counts
}

// ensure returns the folder with the programs, in the user's cache, and builds them if it is not there.
func (b build) ensure(ctx context.Context, progress io.Writer) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	source := filepath.Join(root, "integration", b.module)
	sum, err := b.hash(ctx, source)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "gridproxy", "tools", sum)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := b.run(ctx, source, dir, progress); err != nil {
		return "", fmt.Errorf("building %s: %w", source, err)
	}
	return dir, nil
}

// hash is over everything that decides what is built.
func (b build) hash(ctx context.Context, source string) (string, error) {
	h := sha256.New()
	for _, name := range b.files {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("reading the sources: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
	}
	toolchain, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return "", fmt.Errorf("asking for Go's version: %w", err)
	}
	fmt.Fprintf(h, "%s%s/%s %q %q", toolchain, runtime.GOOS, runtime.GOARCH, b.flags, b.links)
	for _, t := range b.targets {
		if t.cgo || len(t.flags) > 0 {
			fmt.Fprintf(h, " %s %s %t %q", t.name, t.pkg, t.cgo, t.flags)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// run builds into a folder beside the final one and renames it, so that a folder of the final name
// is always complete.
func (b build) run(ctx context.Context, source, dir string, progress io.Writer) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lockFile(ctx, dir+".lock", progress)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	temp, err := os.MkdirTemp(parent, "building-")
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(temp)
	fmt.Fprintf(progress, "building %s, for %s\n", b.what, dir)
	if err := b.fill(ctx, source, temp, progress); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("opening the folder to all users: %w", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return fmt.Errorf("putting the tools in place: %w", err)
	}
	return nil
}

func (b build) fill(ctx context.Context, source, dir string, progress io.Writer) error {
	for _, t := range b.targets {
		if err := b.compile(ctx, source, t, filepath.Join(dir, t.name), progress); err != nil {
			return err
		}
	}
	for _, name := range b.links {
		if err := os.Symlink(b.targets[0].name, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("linking %s: %w", name, err)
		}
	}
	if b.extra == nil {
		return nil
	}
	return b.extra(ctx, source, dir)
}

// compile runs go build, which names each package as it compiles it; that is the progress.
func (b build) compile(ctx context.Context, source string, t target, output string, progress io.Writer) error {
	start := time.Now()
	cgo := "CGO_ENABLED=0"
	if t.cgo {
		cgo = "CGO_ENABLED=1"
	}
	args := slices.Concat([]string{"build", "-v", "-o", output}, b.flags, t.flags, []string{t.pkg})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	// As in the Makefile: packages that our programs share are compiled once, and all of them without what only
	// debuggers read and with less collecting of garbage, which takes a quarter less.
	cmd.Env = append(os.Environ(), cgo, "GOWORK=off", "GOFLAGS=-gcflags=all=-dwarf=false", "GOGC=400")
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
			fmt.Fprintf(progress, "  %4d packages, %s\n", packages, now.Sub(start).Round(time.Second))
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
