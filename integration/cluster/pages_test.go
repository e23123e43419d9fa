package cluster

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/document"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/program"
)

// TestPagesOnLaptop types what a newcomer reads first, in a new clone, up to the cluster.
func TestPagesOnLaptop(t *testing.T) {
	need.IPTables(t)
	for page := range clusterFrom() {
		t.Run(page, func(t *testing.T) {
			clone := cloned(t)
			// What make hands down to this test is not the newcomer's; the caches of Go are this machine's.
			shell := document.Shell{Dir: clone, Env: []string{"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH"), "MAKEFLAGS=", "MAKELEVEL="}}
			r := &tour{t: t, session: shell.Open(t, stepTime), values: strings.NewReplacer()}
			laptop, _ := parts(t, clone, page)
			if page == "README.md" {
				// It says so in a sentence, and getting-started.md in a block.
				r.session.Type("make build && export PATH=$PWD/bin:$PATH")
			}
			for _, e := range laptop {
				r.follow(page, e)
			}
		})
	}
}

// TestDeviations: each row of the table is about a command, and says why.
func TestDeviations(t *testing.T) {
	var commands []document.Command
	for page := range clusterFrom() {
		laptop, onCluster := parts(t, source, page)
		for _, e := range slices.Concat(laptop, onCluster) {
			commands = append(commands, e.Commands...)
		}
	}
	for _, d := range deviations() {
		if !slices.ContainsFunc(commands, func(c document.Command) bool { return slices.Contains(about(c), d) }) {
			t.Errorf("no command begins with %q and has %q: remove the row", d.command, d.replace[0])
		}
		if d.why == "" {
			t.Errorf("the row of %q does not say why", d.command)
		}
	}
}

// TestPagesOnCluster goes on where TestPagesOnLaptop ends: from the chart to a closed Service, a
// unit without endpoints, and the end of each page.
func TestPagesOnCluster(t *testing.T) {
	r, clone := newPagesCluster(t)
	page := "docs/getting-started.md"
	_, onCluster := parts(t, clone, page)
	for i, e := range onCluster {
		r.follow(page, e)
		if next := i + 1; e.Heading == "Apply a Grid" && (next == len(onCluster) || onCluster[next].Heading != e.Heading) {
			r.asksPlugin(page, clone)
		}
	}
	if out, code := r.session.Type("helm uninstall gridproxy --namespace gridproxy --wait"); code != 0 {
		t.Fatal(out)
	}
	page = "README.md"
	_, onCluster = parts(t, clone, page)
	for _, e := range onCluster {
		r.follow(page, e)
	}
	for _, workload := range []string{"daemonset/gridproxy", "deployment/grid-controller"} {
		if out, code := r.session.Type("kubectl --namespace gridproxy rollout status --timeout=120s " + workload); code != 0 {
			t.Fatal(out)
		}
	}
}

// asksPlugin runs the example of the plugin. Here all Nodes answer; on the page one does not.
func (r *tour) asksPlugin(page, clone string) {
	laptop, _ := parts(r.t, clone, page)
	for _, e := range laptop {
		for _, c := range e.Commands {
			if !strings.HasPrefix(c.Text, "kubectl grid ") {
				continue
			}
			shown := []string{strings.Replace(e.Output[0], "  READY", "…READY", 1), "bj-1  beijing…healthy…", "DeploymentGrid default/deploymentgrid-demo  location  2/2 …"}
			out, code := r.session.Type(c.Text)
			if err := document.Compare(document.Varies, shown, out); err != nil || code != 0 {
				r.t.Errorf("%s: exit code %d, %v", c.Text, code, err)
			}
		}
	}
}

// newPagesCluster starts machines without labels, and a shell in a new clone beside them.
func newPagesCluster(t *testing.T) (*tour, string) {
	t.Helper()
	need.Cluster(t)
	helm, err := apiserver.EnsureHelm(t.Context(), os.Stderr)
	must(t, err)
	gridproxy := machines.ImageForTest(t, func(ctx context.Context, dir string) (machines.Image, error) {
		return machines.GridproxyAs(ctx, dir, "registry.example.com/gridproxy:1.0")
	})
	specs := machines.Manual()
	for i := range specs {
		specs[i].Labels = nil
	}
	c := machines.ForTest(t, machines.Options{Machines: specs, Images: []machines.Image{gridproxy, machines.ImageForTest(t, machines.Curl)}})
	shell := document.NewShell(t, c.Admin(), map[string]string{
		"kubectl": c.Tools().Path("kubectl"), "helm": helm, "kubectl-grid": program.ForTest(t, program.KubectlGrid),
	})
	shell.Namespace = c.Outside()
	clone := cloned(t)
	r := &tour{t: t, session: shell.Open(t, stepTime), cluster: c}
	if out, code := r.session.Type("cd '" + clone + "'"); code != 0 {
		t.Fatal(out)
	}
	var servers []string
	for _, a := range c.APIServers() {
		servers = append(servers, a.String())
	}
	r.values = strings.NewReplacer("APISERVERS", strings.Join(servers, ","),
		"CLUSTERCIDR", "'clusterCIDR="+strings.ReplaceAll(machines.ClusterCIDRs, ",", `\,`)+"'")
	return r, clone
}
