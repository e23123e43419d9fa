package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// fluxModules is the file that names the versions of Flux's modules.
const fluxModules = "integration/tools/deploy/flux.mod"

// TestFlux: deploy/federation/flux, with the files of the releases built from the same versions of
// Flux's modules, is an installation of what it names. Only what the addresses answer is not
// tested.
func TestFlux(t *testing.T) {
	t.Parallel()
	root, err := Root(t.Context())
	must(t, err)
	tools, err := apiserver.Ensure(t.Context(), os.Stderr)
	must(t, err)
	kubectl := tools.Path("kubectl")
	controller := download(t, root, "github.com/fluxcd/kustomize-controller")
	api := download(t, root, "github.com/fluxcd/source-controller/api")

	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join(root, "deploy/federation/flux"))))
	file := filepath.Join(dir, "kustomization.yaml")
	text := read(t, file)
	for address, content := range map[string]string{
		release("source-controller", api.Version, "crds"):                 minimalDefinition,
		release("kustomize-controller", controller.Version, "crds"):       build(t, kubectl, filepath.Join(controller.Dir, "config/crd")),
		release("kustomize-controller", controller.Version, "deployment"): build(t, kubectl, filepath.Join(controller.Dir, "config/manager")),
	} {
		name := filepath.Base(address)
		if strings.Count(text, address+"\n") != 1 {
			t.Errorf("kustomization.yaml does not have %s", address)
		}
		text = strings.Replace(text, address, name, 1)
		write(t, filepath.Join(dir, name), content)
	}
	if strings.Contains(text, "https://") {
		t.Errorf("there is another address in it:\n%s", text)
	}
	write(t, file, text)
	isInstallation(t, build(t, kubectl, dir), controller.Version, sourceOf(t, root, controller))
}

// isInstallation checks what kubectl would apply.
func isInstallation(t *testing.T, all, version, source string) {
	t.Helper()
	count := map[string]int{}
	for document := range strings.SplitSeq("\n"+all, "\n---\n") {
		var head struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		must(t, yaml.Unmarshal([]byte(document), &head))
		count[head.Kind]++
		switch head.Kind {
		case "Deployment":
			isController(t, document, version, source)
		case "ClusterRole":
			isModest(t, document)
		}
	}
	want := map[string]int{
		"Namespace": 1, "ServiceAccount": 1, "ClusterRole": 1, "ClusterRoleBinding": 1, "Role": 1, "RoleBinding": 1,
		"CustomResourceDefinition": 2, "Deployment": 1,
	}
	if !maps.Equal(count, want) {
		t.Errorf("there are %v, want %v", count, want)
	}
}

func isController(t *testing.T, document, version, source string) {
	t.Helper()
	var d appsv1.Deployment
	must(t, yaml.UnmarshalStrict([]byte(document), &d))
	spec := d.Spec.Template.Spec
	if d.Namespace != "flux-system" || spec.ServiceAccountName != "kustomize-controller" {
		t.Errorf("it is in namespace %s, with account %s", d.Namespace, spec.ServiceAccountName)
	}
	if len(spec.Containers) != 1 { // a patch of a container that there is not adds one
		t.Fatalf("it has %d containers", len(spec.Containers))
	}
	c := spec.Containers[0]
	if want := "ghcr.io/fluxcd/kustomize-controller:" + version; c.Image != want {
		t.Errorf("its image is %s, want %s", c.Image, want)
	}
	if c.Resources.Limits.Memory().IsZero() || !c.Resources.Limits.Cpu().IsZero() {
		t.Errorf("its limits are %v, want one of memory and none of cpu", c.Resources.Limits)
	}
	for _, arg := range c.Args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.Contains(source, `"`+name+`"`) {
			t.Errorf("kustomize-controller has no flag --%s", name)
		}
	}
	for _, gate := range []string{"ExternalArtifact", "DisableConfigWatchers"} {
		if !strings.Contains(strings.Join(c.Args, " "), gate+"=true") || !strings.Contains(source, `"`+gate+`"`) {
			t.Errorf("the gate %s is not set, or not known: %v", gate, c.Args)
		}
	}
}

// isModest checks that Flux cannot do everything, and that it reads no Secret but kubeconfigs.
func isModest(t *testing.T, document string) {
	t.Helper()
	var role rbacv1.ClusterRole
	must(t, yaml.UnmarshalStrict([]byte(document), &role))
	for _, r := range role.Rules {
		all := slices.Concat(r.APIGroups, r.Resources, r.Verbs)
		if slices.Contains(all, "*") || slices.Contains(r.Resources, "secrets") && !slices.Equal(r.ResourceNames, []string{"member-kubeconfig"}) {
			t.Errorf("it may do this: %v", r)
		}
	}
}

type module struct{ Dir, Version string }

// download finds a module of fluxModules, and fetches it if it is not there.
func download(t *testing.T, root, path string) module {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-modfile="+filepath.Base(fluxModules), "-json", path)
	cmd.Dir = filepath.Join(root, filepath.Dir(fluxModules))
	var m module
	must(t, json.Unmarshal([]byte(output(t, cmd)), &m))
	return m
}

// sourceOf is the source of kustomize-controller and of the library that defines most of its flags
// and gates: each is there in quotes.
func sourceOf(t *testing.T, root string, controller module) string {
	t.Helper()
	library := download(t, root, "github.com/fluxcd/pkg/runtime").Dir
	files := []string{filepath.Join(controller.Dir, "main.go"), filepath.Join(controller.Dir, "internal/features/features.go")}
	for _, folder := range []string{"acl", "controller", "leaderelection", "logger", "features"} {
		found, err := filepath.Glob(filepath.Join(library, folder, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s has no files in %s: %v", library, folder, err)
		}
		files = append(files, found...)
	}
	var text strings.Builder
	for _, f := range files {
		text.WriteString(read(t, f))
	}
	return text.String()
}

// release is the address of a file of a release.
func release(program, version, what string) string {
	return fmt.Sprintf("https://github.com/fluxcd/%s/releases/download/%s/%s.%s.yaml", program, version, program, what)
}

func build(t *testing.T, kubectl, dir string) string {
	t.Helper()
	return output(t, exec.CommandContext(t.Context(), kubectl, "kustomize", dir))
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, problems.String())
	}
	return out.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o600))
}

// minimalDefinition is in the place of source-controller's, which its module of types does not
// have.
const minimalDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: externalartifacts.source.toolkit.fluxcd.io}
`
