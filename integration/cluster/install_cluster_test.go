package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/document"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
	"gridproxy/integration/manifests/chart"
)

const (
	// source is this repository.
	source = "../.."
	// deployment and the name of a unit are the name of a child of the manual's DeploymentGrid; service is its Service.
	deployment = "deploymentgrid-demo-"
	service    = "servicegrid-demo-svc"
)

// installCluster is a cluster with one machine in each of two units, of either variant of iptables,
// and no kube-proxy.
type installCluster struct {
	*machines.Cluster
	t         *testing.T
	shell     document.Shell
	superEdge apiserver.SuperEdge
}

// where says by machine which unit it is in.
func where() map[string]string { return map[string]string{"bj-1": "beijing", "gz-1": "guangzhou"} }

func newInstallCluster(t *testing.T) *installCluster {
	t.Helper()
	w := &installCluster{t: t}
	var err error
	w.superEdge, err = apiserver.EnsureSuperEdge(t.Context(), os.Stderr)
	must(w.t, err)
	helm, err := chart.New(t.Context(), os.Stderr, t.TempDir())
	must(w.t, err)
	var specs []machines.Spec
	for name, unit := range where() {
		variant := apiserver.Variant("nft")
		if name == "gz-1" {
			variant = apiserver.Legacy
		}
		specs = append(specs, machines.Spec{Name: name, Labels: map[string]string{"location": unit}, Variant: variant})
	}
	w.Cluster = machines.ForTest(t, machines.Options{
		Machines: specs, Images: []machines.Image{machines.ImageForTest(t, machines.Gridproxy)},
		// Before the controllers start: the garbage collector looks for new kinds only from time to time.
		Manifests: []string{w.superEdge.CRDs(), "../superedge/testdata/superedge-v1alpha2.yaml"},
	})
	controller := program.ForTest(t, program.GridController)
	w.shell = document.NewShell(t, w.Admin(), map[string]string{
		"helm": helm.Path, "kubectl": w.Tools().Path("kubectl"), "grid-controller": controller,
	})
	w.shell.Namespace = w.Outside()
	w.shell.Link(t, "deploy", source+"/deploy")
	return w
}

// types runs what an administrator types, and says how long it took.
func (w *installCluster) types(format string, args ...any) string {
	w.t.Helper()
	return w.shell.Type(w.t, format, args...)
}

// refused wants a command to fail, and to say some words.
func (w *installCluster) refused(words, format string, args ...any) {
	w.t.Helper()
	if said := w.types("if "+format+" 2>&1; then exit 1; fi", args...); !strings.Contains(said, words) {
		w.t.Errorf("want %q in %s", words, said)
	}
}

// values are what every installation needs here.
func (w *installCluster) values() string {
	return "--namespace gridproxy --set-json '" + strings.Join(w.Values(), "' --set-json '") + "'"
}

const waitFlags = "--wait --timeout 120s"

func (w *installCluster) pods() {
	w.t.Helper()
	for _, unit := range slices.Sorted(maps.Values(where())) {
		wait.Until(w.t, "the Grid has its children", func() error {
			_, err := w.Kubectl("get", "deployment", deployment+unit)
			return err
		})
		w.MustKubectl(w.t, "rollout", "status", "deployment/"+deployment+unit, "--timeout=120s")
	}
}

// identity is what must survive, by kind and name: the UIDs of definitions, Grids, NodeUnits, children and Pods, how often
// these were started, and the Service's address.
func (w *installCluster) identity() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	add := func(path string, args ...string) {
		out := w.MustKubectl(w.t, append(args, "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} `+path+`{"\n"}{end}`)...)
		for line := range strings.Lines(out) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			all[name] = rest
		}
	}
	add("", "get", "crd")
	add("", "get", "deploymentgrids,servicegrids")
	add("{.metadata.generation}", "get", "deployments")
	add("{.spec.clusterIPs}", "get", "services")
	add("{.status.containerStatuses[*].restartCount}", "get", "pods")
	return all
}

// survives does something and compares what there was before with what there is afterwards. New things are no matter.
func (w *installCluster) survives(what string, do func()) {
	w.t.Helper()
	before := w.identity()
	do()
	after := w.identity()
	for name, was := range before {
		if is := after[name]; is != was {
			w.t.Errorf("%s: %s was %q and is %q", what, name, was, is)
		}
	}
	if len(before) < 5+2+2+4 {
		w.t.Errorf("%s: there was little that could have gone: %v", what, before)
	}
}

// answers waits until the Service answers Pods in each unit, with Pods of that unit alone.
func (w *installCluster) answers() {
	w.t.Helper()
	ip := w.MustKubectl(w.t, "get", "service", service, "-o", "jsonpath={.spec.clusterIP}")
	for machine := range where() {
		pod := w.MustKubectl(w.t, "get", "pods", "--selector=appGrid=echo", "--field-selector=spec.nodeName="+machine, "-o", "jsonpath={.items[0].metadata.name}")
		inside, err := w.Pod(w.t.Context(), "default", pod)
		must(w.t, err)
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: apiserver.Dialer(inside), DisableKeepAlives: true}}
		wait.Until(w.t, "the Service answers "+pod, func() error {
			for range 8 {
				answer, err := get(w.t.Context(), &client, "http://"+ip+"/")
				if err == nil && !strings.Contains(answer, "node name:\t"+machine) {
					err = fmt.Errorf("a Pod on %s is answered: %q", machine, answer)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// gone: nothing of the release is left but what is kept.
func (w *installCluster) gone() {
	w.t.Helper()
	wait.Until(w.t, "the release is gone", func() error {
		out, err := w.Kubectl("get", "daemonsets,deployments,pods,serviceaccounts,roles,rolebindings,poddisruptionbudgets,services",
			"--namespace=gridproxy", "--selector=app.kubernetes.io/part-of=gridproxy", "-o", "name")
		return errors.Join(err, wait.Check(out == "", "there are %s", out))
	})
	if out := w.MustKubectl(w.t, "get", "clusterroles,clusterrolebindings", "--selector=app.kubernetes.io/part-of=gridproxy", "-o", "name"); out != "" {
		w.t.Errorf("there are %s", out)
	}
}

// copyOf copies a folder of deploy into the shell's, with what symbolic links name, and edits one of its files.
func (w *installCluster) copyOf(folder, to, file string, edits map[string]string) {
	w.t.Helper()
	w.shell.Run(w.t, fmt.Sprintf("cp -rL deploy/%s %s", folder, to))
	path := filepath.Join(w.shell.Dir, to, file)
	content, err := os.ReadFile(path)
	must(w.t, err)
	text := string(content)
	for from, into := range edits {
		if !strings.Contains(text, from) {
			w.t.Fatalf("%s has no %q", path, from)
		}
		text = strings.ReplaceAll(text, from, into)
	}
	must(w.t, os.WriteFile(path, []byte(text), 0o600))
}
