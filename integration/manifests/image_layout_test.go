package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gridproxy/deploy/image/tree"
)

// layout is a folder with images in OCI's format: what a push sends to a registry, as files.
type layout struct{ folder string }

// platform is what a manifest list says of an image.
type platform struct {
	OS           string
	Architecture string
	Variant      string
}

func (p platform) String() string {
	return strings.TrimSuffix(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
}

type descriptor struct {
	Digest   string
	Size     int64
	Platform platform
}

// config is what an image says of itself.
type config struct {
	platform
	Config struct {
		User       string
		Env        []string
		Entrypoint []string
		Cmd        []string
		Labels     map[string]string
	}
}

type image struct {
	platform
	config config
	files  tree.Tree
	packed int64 // bytes that are pulled
}

// images are those of the one manifest list in the folder.
func (l layout) images() ([]image, error) {
	var index, list struct{ Manifests []descriptor }
	text, err := os.ReadFile(filepath.Join(l.folder, "index.json"))
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil || len(index.Manifests) != 1 {
		return nil, fmt.Errorf("reading the index of %s: %w, %d entries; want one list", l.folder, err, len(index.Manifests))
	}
	if err := l.read(index.Manifests[0], &list); err != nil {
		return nil, err
	}
	var all []image
	for _, d := range list.Manifests {
		i, err := l.image(d)
		if err != nil {
			return nil, fmt.Errorf("reading the image for %s: %w", d.Platform, err)
		}
		all = append(all, i)
	}
	return all, nil
}

func (l layout) image(d descriptor) (image, error) {
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	if err := l.read(d, &manifest); err != nil {
		return image{}, err
	}
	i := image{platform: d.Platform, files: tree.Tree{}}
	if err := l.read(manifest.Config, &i.config); err != nil {
		return image{}, err
	}
	for _, layer := range manifest.Layers {
		i.packed += layer.Size
		content, err := l.blob(layer)
		if err != nil {
			return image{}, err
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return image{}, fmt.Errorf("unpacking layer %s: %w", layer.Digest, err)
		}
		if err := addLayer(i.files, unpacked); err != nil {
			return image{}, err
		}
	}
	return i, nil
}

func (l layout) read(d descriptor, into any) error {
	content, err := l.blob(d)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", d.Digest, err)
	}
	return nil
}

// blob is the content that a descriptor is about, if it is that.
func (l layout) blob(d descriptor) ([]byte, error) {
	sum, ok := strings.CutPrefix(d.Digest, "sha256:")
	if !ok {
		return nil, fmt.Errorf("%q is no SHA-256 digest", d.Digest)
	}
	content, err := os.ReadFile(filepath.Join(l.folder, "blobs", "sha256", filepath.Base(sum)))
	if err != nil {
		return nil, err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(content)); got != sum {
		return nil, fmt.Errorf("the content of %s has the digest %s", d.Digest, got)
	}
	return content, nil
}
