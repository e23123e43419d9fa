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
	"strings"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/program"
)

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
		tool, err := exec.LookPath(name)
		if err != nil {
			return Image{}, fmt.Errorf("making image %s (run `apt-get install %s`): %w", curlName, group, err)
		}
		linked, err := exec.CommandContext(ctx, "ldd", tool).Output()
		if err != nil {
			return Image{}, fmt.Errorf("finding the libraries of %s: %w", tool, err)
		}
		files["usr/bin/"+name] = tool
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
	for _, folder := range []string{program.Gridproxy, program.GridController, program.GridDNS} {
		binary, err := program.Path(ctx, folder)
		if err != nil {
			return Image{}, err
		}
		files["usr/local/bin/"+filepath.Base(folder)] = binary
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
	start, err := program.Path(ctx, program.Workloads)
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
	return pack(dir, name, how, files, nil, base)
}

// rootFS is the path of the image's root file system, which is kept in the user's cache folder until the program
// that makes it changes: fetching and merging Debian's packages takes longer than starting a cluster.
func rootFS(ctx context.Context) (string, error) {
	maker, err := program.Path(ctx, program.RootFS)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(maker)
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
	// Without security updates: a test is not attacked, and one mirror less can be in the middle of
	// an update.
	if out, err := exec.CommandContext(ctx, maker, "-security-mirror=", runtime.GOARCH, temp).CombinedOutput(); err != nil {
		return "", fmt.Errorf("making the root file system of the image: %w: %s", err, bytes.TrimSpace(out))
	}
	return path, os.Rename(temp, path)
}

// single makes an image that runs one of the programs, with nothing else in it but files and links, by their paths.
func single(ctx context.Context, dir, role, name string, files, links map[string]string) (Image, error) {
	binary, err := program.Path(ctx, program.Workloads)
	if err != nil {
		return Image{}, err
	}
	all := map[string]string{"bin/" + role: binary}
	maps.Copy(all, files)
	return pack(dir, name, run{Entrypoint: []string{"/bin/" + role}}, all, links)
}

// pack makes an image in a folder: one layer of executable files and links, by their paths in
// it, over others.
func pack(dir, name string, how run, files, links map[string]string, below ...string) (Image, error) {
	path := filepath.Join(dir, strings.NewReplacer("/", "_", ":", "_").Replace(name)+".tar")
	layer := path + ".layer"
	defer func() { _ = os.Remove(layer) }()
	if err := writeLayer(layer, files, links); err != nil {
		return Image{}, err
	}
	return writeImage(path, name, how, append(below, layer)...)
}
