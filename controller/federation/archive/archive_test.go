package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func object(kind, name, text string) []byte {
	o, err := json.Marshal(map[string]any{"kind": kind, "metadata": map[string]any{"name": name}, "spec": text})
	if err != nil {
		panic(err)
	}
	return o
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sorted(objects [][]byte) [][]byte {
	all := slices.Clone(objects)
	slices.SortFunc(all, bytes.Compare)
	return all
}

// TestRoundTrip: what is packed is unpacked, and the order does not matter.
func TestRoundTrip(t *testing.T) {
	kind := rapid.SampledFrom([]string{"DeploymentGrid", "Namespace", "", "../../etc"})
	name := rapid.SampledFrom([]string{"pos", "pos-2", "a/b", strings.Repeat("long", 70), "\x00ü", "kustomization"})
	rapid.Check(t, func(t *rapid.T) {
		var objects [][]byte
		for range rapid.IntRange(0, 12).Draw(t, "objects") {
			objects = append(objects, object(kind.Draw(t, "kind"), name.Draw(t, "name"), rapid.String().Draw(t, "text")))
		}
		packed, err := Pack(objects)
		must(t, err)
		got, err := Unpack(packed)
		must(t, err)
		if !slices.EqualFunc(sorted(got), sorted(objects), bytes.Equal) {
			t.Fatalf("unpacked are %q, want %q", got, objects)
		}
		other := rapid.Permutation(objects).Draw(t, "order")
		if again, err := Pack(other); err != nil || Digest(again) != Digest(packed) {
			t.Fatalf("in another order the digest is %s, not %s (%v)", Digest(again), Digest(packed), err)
		}
		checkNames(t, packed)
	})
}

// checkNames checks that Flux would read each file, and write it where it should.
func checkNames(t *rapid.T, packed []byte) {
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	seen := map[string]bool{}
	for files := tar.NewReader(zipped); ; {
		header, err := files.Next()
		if err == io.EOF {
			return
		}
		must(t, err)
		base, isYAML := strings.CutSuffix(header.Name, ".yaml")
		if !isYAML || strings.Trim(base, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(header.Name) > 100 || seen[header.Name] {
			t.Fatalf("the file name %q is unsafe, or not the only one", header.Name)
		}
		seen[header.Name] = true
	}
}

// tarOf is an archive of files with these headers, and zeros in them. A tar.Writer drops the
// records of sparse files, so they begin with XNU. in the headers.
func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var plain, packed bytes.Buffer
	files := tar.NewWriter(&plain)
	for _, h := range headers {
		must(t, files.WriteHeader(&h))
		_, err := files.Write(make([]byte, h.Size))
		must(t, err)
	}
	must(t, files.Close())
	zipped := gzip.NewWriter(&packed)
	_, err := zipped.Write(bytes.ReplaceAll(plain.Bytes(), []byte("XNU.sparse."), []byte("GNU.sparse.")))
	must(t, err)
	must(t, zipped.Close())
	return packed.Bytes()
}

func TestUnpackBounds(t *testing.T) {
	many := func(n int, h tar.Header) []tar.Header { return slices.Repeat([]tar.Header{h}, n) }
	sparse := tar.Header{Name: "a", PAXRecords: map[string]string{
		"XNU.sparse.size": fmt.Sprint(MaxFileSize), "XNU.sparse.numblocks": "1", "XNU.sparse.map": fmt.Sprint(MaxFileSize, ",0"),
	}}
	for _, c := range []struct {
		what    string
		archive []byte
		want    string // in the error; "": no error
	}{
		{"the largest file", tarOf(t, tar.Header{Name: "a", Size: MaxFileSize}), ""},
		{"a larger file", tarOf(t, tar.Header{Name: "a", Size: MaxFileSize + 1}), "above the bound of 2097152"},
		{"the most files", tarOf(t, many(MaxFiles, tar.Header{Name: "a"})...), ""},
		{"more files", tarOf(t, many(MaxFiles+1, tar.Header{Name: "a"})...), "more than 2000 files"},
		{"many bytes", tarOf(t, many(11, tar.Header{Name: "a", Size: MaxFileSize - 100})...), "more than 20971520 bytes unpacked"},
		{"many bytes of sparse files", tarOf(t, many(11, sparse)...), "more than 20971520 bytes unpacked"},
		{"a link", tarOf(t, tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "not a regular file"},
		{"no archive", []byte("no archive"), "unpacking an archive"},
		{"nothing", nil, "unpacking an archive"},
	} {
		_, err := Unpack(c.archive)
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestUnpackZeros: zeros after the end of the tar are not read above the bound.
func TestUnpackZeros(t *testing.T) {
	for size, good := range map[int]bool{MaxUnpacked: true, MaxUnpacked + 1: false} {
		var packed bytes.Buffer
		zipped := gzip.NewWriter(&packed)
		_, err := zipped.Write(make([]byte, size))
		must(t, err)
		must(t, zipped.Close())
		if _, err := Unpack(packed.Bytes()); (err == nil) != good {
			t.Errorf("an archive of %d zeros: %v", size, err)
		}
	}
}

func TestPackBounds(t *testing.T) {
	large := object("A", "a", strings.Repeat("x", MaxFileSize))
	for what, objects := range map[string][][]byte{
		"no JSON":         {[]byte("no JSON")},
		"too many":        slices.Repeat([][]byte{object("A", "a", "")}, MaxFiles+1),
		"one too large":   {large},
		"all too large":   slices.Repeat([][]byte{object("A", "a", strings.Repeat("x", MaxFileSize/2))}, 21),
		"JSON, no object": {[]byte("[]")},
	} {
		if _, err := Pack(objects); err == nil {
			t.Errorf("%s: packed", what)
		}
	}
}

// TestWeight: an archive is not larger than its objects are said to be.
func TestWeight(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var objects [][]byte
	sum := 0
	for i := range 100 {
		var text strings.Builder
		for range random.IntN(5000) {
			text.WriteByte(byte('a' + random.IntN(26)))
		}
		o := object("DeploymentGrid", fmt.Sprintf("grid-%d", i), text.String())
		objects, sum = append(objects, o), sum+Weight(o)
	}
	packed, err := Pack(objects)
	must(t, err)
	if len(packed) > sum || sum > 2*len(packed) {
		t.Errorf("the archive has %d bytes, its objects are said to take %d", len(packed), sum)
	}
}

func FuzzUnpack(f *testing.F) {
	whole, err := Pack([][]byte{object("DeploymentGrid", "pos", "x"), object("Namespace", "shop", "")})
	must(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(tarOf(f, tar.Header{Name: "../../x", Size: 3}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, archive []byte) {
		objects, err := Unpack(archive)
		if err != nil {
			return
		}
		total := 0
		for _, o := range objects {
			total += len(o)
		}
		if len(objects) > MaxFiles || total > MaxUnpacked {
			t.Errorf("%d objects of %d bytes are unpacked", len(objects), total)
		}
	})
}
