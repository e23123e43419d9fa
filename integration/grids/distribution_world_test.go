package grids

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// distribution is a hub and its members, each with a real control plane, four Nodes and
// grid-controller. The hub and the clusters that fetch their Grids have Flux.
type distribution struct {
	whole, t   *testing.T
	binary     string
	flux       apiserver.Flux
	hub        *site
	members    map[string]*site
	uplink     *apiserver.Link // by which west reaches the hub
	west, east *site
}

// site is one cluster. What it runs can be killed and started again.
type site struct {
	*nodes.Cluster
	name        string
	client      client.Client // as admin, without any cache
	engine      *apiserver.Engine
	engineUser  *rest.Config
	engineFlags []string
	controller  *nodes.GridController
	options     nodes.ControllerOptions // of its grid-controller
}

// The members: west fetches its Grids and cannot be reached, east is reached by the hub.
const west, east = "west", "east"

// newDistribution starts the clusters and has the members join.
func newDistribution(t *testing.T, members ...string) *distribution {
	t.Helper()
	d := &distribution{whole: t, t: t, members: map[string]*site{}}
	var err error
	d.flux, err = apiserver.EnsureFlux(t.Context(), os.Stderr)
	must(d.t, err)
	d.binary = program.ForTest(t, program.GridController)
	lab := netns.ForTest(t, netns.Layout{})
	options := []nodes.Options{{Manifests: []string{crds, d.flux.CRDs()}}}
	for _, name := range members {
		o := nodes.Options{Manifests: []string{crds}}
		if name == west {
			o.Namespace, o.Addrs = lab.Outside, lab.Outside.Addrs
			o.Manifests = append(o.Manifests, d.flux.CRDs())
		}
		options = append(options, o)
	}
	clusters := nodes.SeveralForTest(t, options...)
	d.hub = d.newSite("hub", clusters[0])
	for i, name := range members {
		d.members[name] = d.newSite(name, clusters[i+1])
	}
	d.west, d.east = d.members[west], d.members[east]
	d.start(d.hub, "hub")
	for _, name := range members {
		d.join(d.members[name])
	}
	return d
}

func (d *distribution) newSite(name string, c *nodes.Cluster) *site {
	d.t.Helper()
	s := &site{Cluster: c, name: name, client: newUserClient(d.t, c.Admin())}
	var all []nodes.Node
	for i := range 4 {
		all = append(all, nodes.Node{Name: fmt.Sprintf("%s-%d", name, i)})
	}
	s.AddNodes(d.t, all...)
	return s
}

// start starts grid-controller as it is shipped with a part in the distribution, and Flux if it has
// any.
func (d *distribution) start(s *site, part string) {
	d.t.Helper()
	s.options = nodes.AsShipped()
	s.options.Binary = d.binary
	if part != "off" {
		ports, err := apiserver.FreePorts(s.Namespace(), 1)
		must(d.t, err)
		s.options.Manifests = append(s.options.Manifests, "../../deploy/federation/"+part+".yaml")
		s.options.Flags = append(s.options.Flags, "--federation="+part,
			"--artifact-bind-address="+ports[0].String(), "--artifact-url=http://"+ports[0].String())
		d.installEngine(s)
		d.startEngine(s)
	}
	d.startController(s)
	s.options.Manifests = nil
	s.controller.WaitReady(d.t)
}

func (d *distribution) startController(s *site) {
	d.t.Helper()
	s.controller = s.GridController(d.whole, s.options)
}

const engineFiles = "../../deploy/federation/flux"

// installEngine gives Flux the rights that are shipped, and its flags.
func (d *distribution) installEngine(s *site) {
	d.t.Helper()
	dir := d.t.TempDir()
	must(d.t, os.CopyFS(dir, os.DirFS(engineFiles)))
	// Without the files of the releases: they are in the network, and what they install is here
	// already.
	own := "namespace: flux-system\nresources: [namespace.yaml, account.yaml, rights.yaml]\n"
	must(d.t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(own), 0o600))
	s.MustKubectl(d.t, "apply", "-k", dir)
	text, err := os.ReadFile(filepath.Join(engineFiles, "deployment.yaml"))
	must(d.t, err)
	var deployment appsv1.Deployment
	must(d.t, yaml.Unmarshal(text, &deployment))
	s.engineFlags = append(deployment.Spec.Template.Spec.Containers[0].Args, "--enable-leader-election=false")
	s.engineUser, err = s.User(s.API.Addr, "system:serviceaccount:flux-system:kustomize-controller")
	must(d.t, err)
}

func (d *distribution) startEngine(s *site) {
	d.t.Helper()
	var err error
	s.engine, err = s.StartFlux(wait.Usual.Context(d.t), d.flux, s.engineUser, s.engineFlags...)
	must(d.t, err)
}

// join makes a cluster a member by the command that an administrator runs.
func (d *distribution) join(s *site) {
	d.t.Helper()
	args := []string{"join", "--cluster", s.name, "--kubeconfig", d.hub.Kubeconfig()}
	if s.name == west {
		var err error
		d.uplink, err = d.hub.LinkFrom(s.Namespace(), d.hub.API)
		must(d.t, err)
		d.t.Cleanup(d.uplink.Close)
		args = append(args, "--server", "https://"+d.uplink.Addr.String())
	} else {
		args = append(args, "--member-kubeconfig", s.Kubeconfig())
	}
	cmd := exec.CommandContext(d.t.Context(), d.binary, args...)
	var manifest, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &manifest, &said
	if err := cmd.Run(); err != nil {
		d.t.Fatalf("grid-controller join: %v: %s", err, said.String())
	}
	if s.name != west {
		d.start(s, "off")
		return
	}
	file := filepath.Join(d.t.TempDir(), "member.yaml")
	must(d.t, os.WriteFile(file, manifest.Bytes(), 0o600))
	s.MustKubectl(d.t, "apply", "--server-side", "-f", file)
	d.start(s, "member")
}

func (d *distribution) sites() []*site {
	all := []*site{d.hub}
	for _, name := range []string{west, east} {
		if s := d.members[name]; s != nil {
			all = append(all, s)
		}
	}
	return all
}

// run runs a part of a test. Each part relies on those before.
func (d *distribution) run(name string, part func(*distribution)) {
	runPart(&d.t, name, func() { part(d) })
}

// took waits as wait.Until does, and returns how long that took.
func (d *distribution) took(what string, ask func() error) time.Duration {
	d.t.Helper()
	begin := time.Now()
	wait.Until(d.t, what, ask)
	return time.Since(begin)
}

// pauseFor lets time pass until a grace is over, or while something must not happen or must go on.
func pauseFor(t testing.TB, length time.Duration) {
	select {
	// real time: a grace lasts so long, and what must not happen has this long to happen
	case <-time.After(length):
	case <-t.Context().Done():
	}
}

func (s *site) grid(ctx context.Context, name string) (*v1.DeploymentGrid, error) {
	g := &v1.DeploymentGrid{}
	err := s.client.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, g)
	return g, err
}
