package v1_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const crds = "../../../deploy/crds"

// TestGeneratedIsFresh: the generated files of all versions are what controller-gen makes of the
// types now.
func TestGeneratedIsFresh(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("go", "tool", "controller-gen", "object", "crd", "paths=gridproxy/controller/api/...",
		"output:object:stdout", "output:crd:dir="+dir)
	cmd.Stderr = t.Output()
	made, err := cmd.Output()
	if err != nil {
		t.Fatalf("running controller-gen: %v", err)
	}
	copies, length := copyMethods(t), 0
	for name, kept := range copies {
		length += len(kept)
		if !strings.Contains(string(made), kept) {
			t.Errorf("%s is stale: run `make generate`", name)
		}
	}
	if length != len(made) {
		t.Errorf("%v have %d bytes, and controller-gen makes %d: run `make generate`", slices.Collect(maps.Keys(copies)), length, len(made))
	}
	if diff := cmp.Diff(list(t, crds), list(t, dir)); diff != "" {
		t.Errorf("%s holds other definitions: run `make generate` (-kept +made)\n%s", crds, diff)
	}
	for _, name := range list(t, dir) {
		kept := read(t, filepath.Join(crds, name))
		if diff := cmp.Diff(kept, read(t, filepath.Join(dir, name))); diff != "" {
			t.Errorf("%s is stale: run `make generate` (-kept +made)\n%s", name, diff)
		}
		// S-11: there is nothing to convert, so there is no webhook.
		if strings.HasPrefix(name, "site.") && (strings.Contains(kept, "conversion:") || strings.Count(kept, "served: true") != 2) {
			t.Errorf("%s: want two served versions and no conversion", name)
		}
	}
}

// copyMethods returns the generated files with methods, by path.
func copyMethods(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../*/zz_generated.*.go", "../site/*/zz_generated.*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			all[name] = read(t, name)
		}
	}
	return all
}

// TestCRDs: the folder holds CRDs alone, so that it can be applied as a whole; none is large; the
// Grids' rules say what Validate says, with what a CEL of Kubernetes 1.25 has.
func TestCRDs(t *testing.T) {
	messages := []string{v1.MessageKeyMissing, v1.MessageKeyInvalid, v1.MessageReplicas, v1.MessageDeployment, v1.MessageStatefulSet, v1.MessageService}
	for _, name := range list(t, crds) {
		text := read(t, filepath.Join(crds, name))
		if len(text) > 100_000 {
			t.Errorf("%s has %d bytes, want at most 100 kB", name, len(text))
		}
		var crd struct {
			Kind string `json:"kind"`
			Spec struct {
				Versions []struct {
					Schema map[string]any `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(text), &crd); err != nil || crd.Kind != "CustomResourceDefinition" {
			t.Errorf("%s holds a %q, want a CustomResourceDefinition: %v", name, crd.Kind, err)
			continue
		}
		if grid := regexp.MustCompile("^" + regexp.QuoteMeta(v1.Group) + "_(deployment|statefulset|service)grids"); !grid.MatchString(name) {
			continue
		}
		found := rules(crd.Spec.Versions[0].Schema)
		if len(found) < 3 {
			t.Errorf("%s has %d rules, want at least 3", name, len(found))
		}
		for _, r := range found {
			if !slices.Contains(messages, r["message"].(string)) {
				t.Errorf("%s: no message of package v1: %q", name, r["message"])
			}
			for _, call := range regexp.MustCompile(`[A-Za-z]\w*\(`).FindAllString(unquoted(r["rule"].(string)), -1) {
				if !slices.Contains([]string{"has(", "size(", "matches("}, call) {
					t.Errorf("%s: is %s) in Kubernetes 1.25? rule %s", name, call, r["rule"])
				}
			}
			for field := range r {
				if field != "rule" && field != "message" {
					t.Errorf("%s: a rule's field %q is not in Kubernetes 1.25", name, field)
				}
			}
		}
	}
}

func unquoted(rule string) string { return regexp.MustCompile(`'[^']*'`).ReplaceAllString(rule, "''") }

// rules are the CEL rules anywhere in a schema.
func rules(schema any) (found []map[string]any) {
	switch s := schema.(type) {
	case map[string]any:
		for name, value := range s {
			if name != "x-kubernetes-validations" {
				found = append(found, rules(value)...)
				continue
			}
			for _, rule := range value.([]any) {
				found = append(found, rule.(map[string]any))
			}
		}
	case []any:
		for _, value := range s {
			found = append(found, rules(value)...)
		}
	}
	return found
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "Kustomization" { // which kubectl apply -f passes over, because its name has no ending
			names = append(names, e.Name())
		}
	}
	if len(names) < 3 || slices.ContainsFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".yaml") }) {
		t.Fatalf("%s holds %v, want at least three manifests and nothing else", dir, names)
	}
	return names
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run `make generate`", err)
	}
	return string(text)
}
