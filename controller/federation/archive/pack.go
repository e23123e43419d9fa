package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// fileNameMax is how many bytes the name of a file has at most, so that it fits into the oldest
// header of tar.
const fileNameMax = 90

// file is one object and its name in the archive.
type file struct {
	name string
	text []byte
}

// Pack returns an archive of objects, which are JSON. Their order does not matter.
func Pack(objects [][]byte) ([]byte, error) {
	files := make([]file, 0, len(objects))
	for _, o := range objects {
		name, err := fileName(o)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: name, text: o})
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(strings.Compare(a.name, b.name), bytes.Compare(a.text, b.text))
	})
	if err := exceeded(files); err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	if err := writeTar(zipped, files); err != nil {
		return nil, fmt.Errorf("packing objects: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("packing objects: %w", err)
	}
	return packed.Bytes(), nil
}

// exceeded returns an error if the files exceed a bound of Unpack.
func exceeded(files []file) error {
	if len(files) > MaxFiles {
		return fmt.Errorf("packing objects: there are %d of them, above the bound of %d", len(files), MaxFiles)
	}
	total := 0
	for _, f := range files {
		total += len(f.text)
		if len(f.text) > MaxFileSize {
			return fmt.Errorf("packing %s: it has %d bytes, above the bound of %d", f.name, len(f.text), MaxFileSize)
		}
	}
	if total > MaxUnpacked {
		return fmt.Errorf("packing objects: they have %d bytes, above the bound of %d", total, MaxUnpacked)
	}
	return nil
}

func writeTar(w io.Writer, files []file) error {
	archive := tar.NewWriter(w)
	used := map[string]bool{}
	for _, f := range files {
		name := f.name
		for i := 2; used[name]; i++ {
			name = fmt.Sprintf("%s-%d", f.name, i)
		}
		used[name] = true
		header := tar.Header{Name: name + ".yaml", Mode: 0o644, Size: int64(len(f.text)), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := archive.Write(f.text); err != nil {
			return err
		}
	}
	return archive.Close()
}

// fileName returns <kind>-<name> of an object, without an extension and only with characters
// that any file system accepts. The end of a long name becomes a hash.
func fileName(object []byte) (string, error) {
	var o struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return "", fmt.Errorf("packing an object of %d bytes: it is no JSON object: %w", len(object), err)
	}
	whole := o.Kind + "-" + o.Metadata.Name
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(whole))
	if len(name) <= fileNameMax-len("-1000") {
		return name, nil
	}
	sum := sha256.Sum256([]byte(whole))
	return name[:fileNameMax/2] + "-" + hex.EncodeToString(sum[:8]), nil
}

// Digest returns "sha256:" and the SHA-256 of an archive in hexadecimal digits.
func Digest(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Weight returns about how many bytes an object adds to an archive. Together the objects of an
// archive take less, since they resemble each other.
func Weight(object []byte) int {
	var n counter
	zipped := gzip.NewWriter(&n)
	_, _ = zipped.Write(object) // a counter does not fail
	_ = zipped.Close()
	return int(n) + fileOverhead
}

// fileOverhead is about what the header of a file takes in an archive.
const fileOverhead = 100

// counter counts bytes that are written to it.
type counter int

func (c *counter) Write(text []byte) (int, error) {
	*c += counter(len(text))
	return len(text), nil
}

// PodSecurity returns those of the labels of a Namespace by which the API server confines its Pods.
func PodSecurity(of map[string]string) map[string]string {
	found := maps.Clone(of)
	maps.DeleteFunc(found, func(key, value string) bool {
		return !strings.HasPrefix(key, "pod-security.kubernetes.io/") || len(validation.IsValidLabelValue(value)) > 0
	})
	return found
}

// Namespace returns a Namespace, as JSON, that Flux makes if it does not exist, and otherwise
// neither changes nor deletes. It has the labels of PodSecurity: without them, Pods that the hub's
// namespace forbids could run there.
func Namespace(name string, labels map[string]string) []byte {
	text, _ := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metav1.ObjectMeta{
		Name: name, Labels: PodSecurity(labels), Annotations: map[string]string{
			"kustomize.toolkit.fluxcd.io/prune": "disabled", "kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent",
		},
	}})
	return text // it has texts only, so it can be encoded
}
