package machines

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// Image is a container image in a file.
type Image struct {
	Name string // as containerd knows it: docker.io/library/gridproxy:dev
	Tar  string // its path, in the format of docker save
}

// run is how a container of an image is started.
type run struct {
	Entrypoint []string `json:",omitempty"`
	Cmd        []string `json:",omitempty"`
	Env        []string `json:",omitempty"`
	StopSignal string   `json:",omitempty"`
}

// writeImage puts layers, which are tar files, together to an image.
func writeImage(path, name string, how run, layers ...string) (_ Image, err error) {
	type history struct {
		Layers []string `json:"diff_ids"`
		Type   string   `json:"type"`
	}
	config := struct {
		Architecture string  `json:"architecture"`
		OS           string  `json:"os"`
		Config       run     `json:"config"`
		RootFS       history `json:"rootfs"`
	}{runtime.GOARCH, "linux", how, history{Type: "layers"}}
	manifest := []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{{Config: "config.json", RepoTags: []string{name}}}

	file, err := os.Create(path)
	if err != nil {
		return Image{}, fmt.Errorf("making an image: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := tar.NewWriter(file)
	for i, layer := range layers {
		inside := fmt.Sprintf("layer-%d.tar", i)
		sum, err := copyInto(w, inside, layer)
		if err != nil {
			return Image{}, fmt.Errorf("adding %s to image %s: %w", layer, name, err)
		}
		config.RootFS.Layers = append(config.RootFS.Layers, "sha256:"+sum)
		manifest[0].Layers = append(manifest[0].Layers, inside)
	}
	for inside, content := range map[string]any{"config.json": config, "manifest.json": manifest} {
		text, err := json.Marshal(content)
		if err == nil {
			err = add(w, inside, 0o644, int64(len(text)), bytes.NewReader(text))
		}
		if err != nil {
			return Image{}, fmt.Errorf("describing image %s: %w", name, err)
		}
	}
	return Image{Name: name, Tar: path}, w.Close()
}

// copyInto adds a file to a tar file and returns its SHA-256.
func copyInto(w *tar.Writer, inside, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if err := add(w, inside, 0o644, info.Size(), io.TeeReader(file, sum)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func add(w *tar.Writer, inside string, mode, size int64, content io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Name: inside, Mode: mode, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}

// writeLayer makes a layer of executable files, by their paths in it, and of symbolic links.
func writeLayer(path string, files, links map[string]string) (err error) {
	layer, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	defer func() { err = errors.Join(err, layer.Close()) }()
	w := tar.NewWriter(layer)
	for inside, from := range files {
		file, err := os.Open(from)
		if err != nil {
			return fmt.Errorf("adding to a layer: %w", err)
		}
		info, err := file.Stat()
		if err == nil {
			err = add(w, inside, 0o755, info.Size(), file)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("adding %s to a layer: %w", filepath.Base(from), err)
		}
	}
	for link, to := range links {
		if err := w.WriteHeader(&tar.Header{Name: link, Linkname: to, Typeflag: tar.TypeSymlink, Mode: 0o777}); err != nil {
			return fmt.Errorf("adding a link to a layer: %w", err)
		}
	}
	return w.Close()
}
