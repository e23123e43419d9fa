package machines

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Names of images. That of the echo server is the manual's.
const (
	pauseName = "docker.io/library/pause:lab"
	echoName  = "docker.io/superedge/echoserver:2.2"
)

// Pause makes the image that every Pod's sandbox runs, in a folder.
func Pause(ctx context.Context, dir string) (Image, error) {
	return single(ctx, dir, "pause", pauseName, nil)
}

// Echo makes the image superedge/echoserver:2.2, named as the manual's; its package says what it answers. The same
// program is a client by the name echo-client.
func Echo(ctx context.Context, dir string) (Image, error) {
	return single(ctx, dir, "echo", echoName, map[string]string{"bin/echo-client": "echo"})
}

// single makes an image of one of the programs, with nothing else in it.
func single(ctx context.Context, dir, program, name string, links map[string]string) (Image, error) {
	binary, err := buildProgram(ctx, dir, "gridproxy/integration/machines/programs/"+program)
	if err != nil {
		return Image{}, err
	}
	layer := filepath.Join(dir, program+"-layer.tar")
	defer os.Remove(layer)
	if err := writeLayer(layer, map[string]string{"bin/" + program: binary}, links); err != nil {
		return Image{}, err
	}
	return writeImage(filepath.Join(dir, program+".tar"), name, run{Entrypoint: []string{"/bin/" + program}}, layer)
}

// buildProgram builds a static program of this module and returns its path.
func buildProgram(ctx context.Context, dir, pkg string) (string, error) {
	path := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", pkg, err, bytes.TrimSpace(out))
	}
	return path, nil
}
