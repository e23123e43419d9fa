package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"
)

// FuzzManifests reads anything. Whatever it is, an error names the file; and what was read without
// one can be written down and read again, and resolves.
func FuzzManifests(f *testing.F) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(text).Files {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, warnings, err := assemble([]parsed{new(options).parse("f.yaml", text)})
		if err != nil {
			warnings = append(warnings, strings.Split(err.Error(), "\n")...)
		}
		for _, line := range warnings {
			if !strings.HasPrefix(line, "f.yaml: ") || strings.Contains(line, ": <nil>:") {
				t.Errorf("does not say where: %q", line)
			}
			if excerpt.Message(line) != line {
				t.Errorf("is not one printable line of at most %d characters: %q", excerpt.MaxLineChars, line)
			}
		}
		if err != nil {
			return
		}
		again, _, err := assemble([]parsed{new(options).parse("g.yaml", manifest(t, objects))})
		if err != nil {
			t.Fatalf("what was read is refused once written down: %v\n%s", err, manifest(t, objects))
		}
		if diff := cmp.Diff(describe(t, objects), describe(t, again)); diff != "" {
			t.Errorf("what was read is read otherwise once written down:\n%s", diff)
		}
		topology.Resolve(objects.Snapshot("n1"), topology.Config{})
	})
}

func manifest(t *testing.T, o Objects) []byte {
	t.Helper()
	var text strings.Builder
	write := func(version, kind string, object any) {
		y, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\napiVersion: " + version + "\nkind: " + kind + "\n" + string(y))
	}
	for _, s := range o.Services {
		write("v1", "Service", s)
	}
	for _, s := range o.Slices {
		write("discovery.k8s.io/v1", "EndpointSlice", s.Object())
	}
	for _, n := range o.Nodes {
		write("v1", "Node", n)
	}
	return []byte("# every file has content\n" + text.String())
}
