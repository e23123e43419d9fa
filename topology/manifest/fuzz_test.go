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
		written := "# every file has content\n---\n" + strings.Join(manifestsOf(t, objects), "---\n")
		again, _, err := assemble([]parsed{new(options).parse("g.yaml", []byte(written))})
		if err != nil {
			t.Fatalf("what was read is refused once written down: %v\n%s", err, written)
		}
		if diff := cmp.Diff(describe(t, objects), describe(t, again)); diff != "" {
			t.Errorf("what was read is read otherwise once written down:\n%s", diff)
		}
		topology.Resolve(objects.Snapshot("n1"), topology.Config{})
	})
}
