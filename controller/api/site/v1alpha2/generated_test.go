package v1alpha2_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGeneratedIsFresh: the generated files are what controller-gen makes of the types now.
func TestGeneratedIsFresh(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("go", "tool", "controller-gen", "object", "crd", "paths=gridproxy/controller/api/site/...",
		"output:object:dir="+dir, "output:crd:dir="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("running controller-gen: %v\n%s", err, out)
	}
	for _, name := range []string{"site.superedge.io_nodeunits.yaml", "site.superedge.io_nodegroups.yaml"} {
		kept := read(t, filepath.Join("../../../../deploy/crds", name))
		if diff := cmp.Diff(kept, read(t, filepath.Join(dir, name))); diff != "" {
			t.Errorf("%s is stale: run `make generate` (-kept +made)\n%s", name, diff)
		}
		if len(kept) > 100_000 {
			t.Errorf("%s has %d bytes, want at most 100 kB", name, len(kept))
		}
		// S-11: there is nothing to convert, so there is no webhook.
		if strings.Contains(kept, "conversion:") || strings.Count(kept, "served: true") != 2 {
			t.Errorf("%s: want two served versions and no conversion", name)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run `make generate`", err)
	}
	return string(text)
}
