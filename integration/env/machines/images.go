package machines

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"gridproxy/integration/env/apiserver"
)

// programs is the command that runs on machines and in Pods. Its name there chooses what it does.
const programs = "gridproxy/integration/env/programs"

// Names of images. That of the echo server is the manual's.
const (
	pauseName = "docker.io/library/pause:lab"
	echoName  = "docker.io/superedge/echoserver:2.2"
	curlName  = "docker.io/library/curl:lab"

	gridproxyName = "docker.io/library/gridproxy:dev"
	kubeProxyName = "docker.io/library/kube-proxy:" + apiserver.Version
)

// Pause makes the image that every Pod's sandbox runs, in a folder.
func Pause(ctx context.Context, dir string) (Image, error) {
	return single(ctx, dir, "pause", pauseName, nil, nil)
}

// Echo makes the image superedge/echoserver:2.2, named as the manual's; its package says what it answers. The same
// program is a client by the name echo-client.
func Echo(ctx context.Context, dir string) (Image, error) {
	return single(ctx, dir, "echo", echoName, nil, map[string]string{"bin/echo-client": "echo"})
}

// Curl makes the image curl:lab: this machine's curl, sh and sleep, with the libraries that they
// are linked to, and what waits in its Pod until a program is run there.
func Curl(ctx context.Context, dir string) (Image, error) {
	files := map[string]string{}
	for name, group := range map[string]string{"curl": "curl", "sh": "dash", "sleep": "coreutils"} {
		program, err := exec.LookPath(name)
		if err != nil {
			return Image{}, fmt.Errorf("making image %s (run `apt-get install %s`): %w", curlName, group, err)
		}
		linked, err := exec.CommandContext(ctx, "ldd", program).Output()
		if err != nil {
			return Image{}, fmt.Errorf("finding the libraries of %s: %w", program, err)
		}
		files["usr/bin/"+name] = program
		for word := range strings.FieldsSeq(string(linked)) {
			if strings.HasPrefix(word, "/") {
				files[strings.TrimPrefix(word, "/")] = word
			}
		}
	}
	return single(ctx, dir, "pause", curlName, files, nil)
}

// Gridproxy makes the image gridproxy:dev of this source tree, in a folder: the Dockerfile's root file system
// and the programs, built with its tags.
func Gridproxy(ctx context.Context, dir string) (Image, error) {
	return GridproxyAs(ctx, dir, gridproxyName)
}

// GridproxyAs makes the same image with another name, such as registry.example.com/gridproxy:1.0.
func GridproxyAs(ctx context.Context, dir, name string) (Image, error) {
	files := map[string]string{}
	for program, tags := range map[string]string{"gridproxy": "", "grid-controller": "", "grid-dns": "nethttpomithttp2"} {
		binary, err := buildProgram(ctx, dir, "gridproxy/cmd/"+program, "-tags="+tags)
		if err != nil {
			return Image{}, err
		}
		files["usr/local/bin/"+program] = binary
	}
	how := run{
		Entrypoint: []string{"gridproxy"}, Cmd: []string{"run"},
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"},
	}
	return onRootFS(ctx, dir, name, how, files)
}

// kubeProxy makes an image of kube-proxy with the same root file system. Its program of that name chooses the
// variant of iptables and becomes kube-proxy.
func kubeProxy(ctx context.Context, dir string, tools apiserver.Tools) (Image, error) {
	start, err := buildProgram(ctx, dir, programs)
	if err != nil {
		return Image{}, err
	}
	return onRootFS(ctx, dir, kubeProxyName, run{Entrypoint: []string{"/usr/local/bin/start"}}, map[string]string{
		"usr/local/bin/start": start, "usr/local/bin/kube-proxy": tools.Path("kube-proxy"),
	})
}

// onRootFS makes an image of some programs on the root file system of the product's own image.
func onRootFS(ctx context.Context, dir, name string, how run, files map[string]string) (Image, error) {
	base, err := rootFS(ctx)
	if err != nil {
		return Image{}, err
	}
	file := fileOf(dir, name)
	layer := file + ".layer"
	defer func() { _ = os.Remove(layer) }()
	if err := writeLayer(layer, files, nil); err != nil {
		return Image{}, err
	}
	return writeImage(file, name, how, base, layer)
}

// rootFS is the path of the image's root file system, which is kept in the user's cache folder until the program
// that makes it changes: fetching and merging Debian's packages takes longer than starting a cluster.
func rootFS(ctx context.Context) (string, error) {
	program, err := os.CreateTemp("", "rootfs-")
	if err != nil {
		return "", fmt.Errorf("making a root file system: %w", err)
	}
	defer func() { _ = os.Remove(program.Name()) }()
	if err := program.Close(); err != nil {
		return "", fmt.Errorf("making a root file system: %w", err)
	}
	if err := goBuild(ctx, program.Name(), "gridproxy/deploy/image/rootfs"); err != nil {
		return "", err
	}
	content, err := os.ReadFile(program.Name())
	if err != nil {
		return "", fmt.Errorf("making a root file system: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	path := filepath.Join(cache, "gridproxy", fmt.Sprintf("rootfs-%.16x.tar", sha256.Sum256(content)))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer func() { _ = os.Remove(temp) }() // it is there only after a failure
	// Without security updates: nobody attacks a test, and one mirror less can be in the middle of an update.
	if out, err := exec.CommandContext(ctx, program.Name(), "-security-mirror=", runtime.GOARCH, temp).CombinedOutput(); err != nil {
		return "", fmt.Errorf("making the root file system of the image: %w: %s", err, bytes.TrimSpace(out))
	}
	return path, os.Rename(temp, path)
}

// single makes an image that runs one of the programs, with nothing else in it but files and links, by their paths.
func single(ctx context.Context, dir, program, name string, files, links map[string]string) (Image, error) {
	binary, err := buildProgram(ctx, dir, programs)
	if err != nil {
		return Image{}, err
	}
	all := map[string]string{"bin/" + program: binary}
	maps.Copy(all, files)
	path := fileOf(dir, name)
	layer := path + ".layer"
	defer func() { _ = os.Remove(layer) }()
	if err := writeLayer(layer, all, links); err != nil {
		return Image{}, err
	}
	return writeImage(path, name, run{Entrypoint: []string{"/bin/" + program}}, layer)
}

// fileOf is where an image of a name is kept.
func fileOf(dir, name string) string {
	return filepath.Join(dir, strings.NewReplacer("/", "_", ":", "_").Replace(name)+".tar")
}

// buildProgram builds a static program of this module and returns its path.
func buildProgram(ctx context.Context, dir, pkg string, flags ...string) (string, error) {
	path := filepath.Join(dir, filepath.Base(pkg))
	return path, goBuild(ctx, path, pkg, flags...)
}

func goBuild(ctx context.Context, path, pkg string, flags ...string) error {
	args := slices.Concat([]string{"build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", path}, flags, []string{pkg})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w: %s", pkg, err, bytes.TrimSpace(out))
	}
	return nil
}
