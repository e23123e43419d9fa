package manifest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the outcomes into testdata instead of comparing them")

// TestRead reads each archive of testdata: a first line of "paths: ..." names what is
// read (- is the file stdin), the files errors, warnings and objects are the outcome.
func TestRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d archives: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { readArchive(t, file) })
	}
}

func readArchive(t *testing.T, file string) {
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	paths, stdin, want := unpack(t, archive)
	objects, warnings, err := Read(paths, bytes.NewReader(stdin))
	got := map[string]string{"errors": "", "warnings": lines(warnings), "objects": ""}
	if err != nil {
		got["errors"] = err.Error() + "\n"
	} else {
		got["objects"] = describe(t, objects)
	}
	if *update {
		archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { _, is := got[f.Name]; return is })
		for _, name := range []string{"errors", "warnings", "objects"} {
			if got[name] != "" {
				archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(got[name])})
			}
		}
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// unpack writes an archive's manifests into an empty directory and makes that the current one.
func unpack(t *testing.T, archive *txtar.Archive) (paths []string, stdin []byte, want map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	want = map[string]string{"errors": "", "warnings": "", "objects": ""}
	for _, f := range archive.Files {
		if _, is := want[f.Name]; is {
			want[f.Name] = string(f.Data)
			continue
		}
		if f.Name == "stdin" {
			stdin = f.Data
			continue
		}
		write(t, f.Name, string(f.Data))
		paths = append(paths, f.Name)
	}
	if line, found := strings.CutPrefix(string(archive.Comment), "paths: "); found {
		line, _, _ = strings.Cut(line, "\n")
		paths = strings.Fields(line)
	}
	return paths, stdin, want
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func lines(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

func describe(t *testing.T, o Objects) string {
	t.Helper()
	var text strings.Builder
	each := func(kind string, object any) {
		y, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "# %s\n%s", kind, y)
	}
	for _, s := range o.Services {
		each("Service", s)
	}
	for _, s := range o.Slices {
		each("EndpointSlice", s.Object())
	}
	for _, n := range o.Nodes {
		each("Node", map[string]any{"metadata": n.ObjectMeta, "spec": n.Spec, "addresses": n.Status.Addresses})
	}
	return text.String()
}
