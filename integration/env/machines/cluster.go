package machines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
)

// ClusterCIDRs are where the addresses of Pods come from; those of Services:
// apiserver.ServiceCIDRs.
const ClusterCIDRs = apiserver.ClusterCIDRs

// Spec says what a machine is like.
type Spec struct {
	Name   string
	Labels map[string]string // of the Node
	// Variant is what the machine's own iptables is, which its kubelet leaves a hint of; "" is nft.
	Variant apiserver.Variant
}

// Manual are the machines of the manual: two units, two machines each.
func Manual() []Spec {
	beijing, guangzhou := map[string]string{"location": "beijing"}, map[string]string{"location": "guangzhou"}
	return []Spec{
		{Name: "bj-1", Labels: beijing}, {Name: "bj-2", Labels: beijing},
		{Name: "gz-1", Labels: guangzhou}, {Name: "gz-2", Labels: guangzhou},
	}
}

// Options say what is special about a Cluster.
type Options struct {
	// Dir is for disks, data, keys and logs; the caller removes it. ForTest fills it in.
	Dir string
	// Machines are those that join; none: those of Manual.
	Machines []Spec
	// NodeGrace is after how long a silent Node is NotReady; 0: the 50 s of Kubernetes.
	NodeGrace time.Duration
	// Manifests are files and folders that are applied before the controllers start: CRDs.
	Manifests []string
	// Images are imported on every machine before its kubelet starts, beside those of Pause and Echo.
	Images []Image
	// ControllerManager are further flags of kube-controller-manager.
	ControllerManager []string
	// Progress receives what takes long; nil discards it.
	Progress io.Writer
}

// Cluster is a running Kubernetes cluster with machines.
type Cluster struct {
	*nodes.Cluster

	options  Options
	name     string // of its control groups
	tools    apiserver.Tools
	runtime  apiserver.Tools
	program  string // pid 1
	fabric   *fabric
	outside  *netns.Namespace
	machines []*Machine
	images   []Image
	planeUp  time.Duration // from zero

	sweeper *exec.Cmd
	alive   io.Closer // the sweeper works when this is closed

	mu   sync.Mutex
	pods []*netns.Namespace // that were handed out
}

// Start builds what is missing, starts a control plane and machines, and returns when these are Ready and know
// the ways to each other's Pods. Close ends it.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if len(o.Machines) == 0 {
		o.Machines = Manual()
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	c := &Cluster{options: o}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster of machines: %w", err), c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	// Machines boot while the control plane starts, and their kubelets wait for it.
	booted := make(chan error, 1)
	go func() { booted <- c.each(func(m *Machine) error { return m.boot() }) }()
	err := c.startControlPlane(ctx)
	if err := errors.Join(err, <-booted); err != nil {
		return err
	}
	return c.each(func(m *Machine) error { return m.join(ctx) })
}

// prepare builds programs and images, in Dir or in the cache.
func (c *Cluster) prepare(ctx context.Context) error {
	var err error
	if c.tools, err = apiserver.Ensure(ctx, c.options.Progress); err != nil {
		return err
	}
	if c.runtime, err = apiserver.EnsureNodeRuntime(ctx, c.options.Progress); err != nil {
		return err
	}
	disks := filepath.Join(c.options.Dir, "machines")
	if err := os.MkdirAll(disks, 0o755); err != nil {
		return fmt.Errorf("making a folder for the machines: %w", err)
	}
	if c.program, err = program.Path(ctx, program.Workloads); err != nil {
		return err
	}
	if err := c.startSweeper(disks); err != nil {
		return err
	}
	for _, build := range []func(context.Context, string) (Image, error){Pause, Echo} {
		image, err := build(ctx, disks)
		if err != nil {
			return err
		}
		c.images = append(c.images, image)
	}
	c.images = append(c.images, c.options.Images...)
	return nil
}

// startSweeper starts the process that removes control groups and disks when this one closes its pipe or ends.
// It is in a session of its own, so that nothing that ends the caller ends it too.
func (c *Cluster) startSweeper(disks string) error {
	c.name = fmt.Sprintf("gridproxy-%d-%s", os.Getpid(), filepath.Base(filepath.Dir(disks)))
	c.sweeper = exec.Command(c.program, "sweep", c.name, disks)
	c.sweeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.sweeper.Dir = "/"
	pipe, err := c.sweeper.StdinPipe()
	if err == nil {
		err = c.sweeper.Start()
	}
	if err != nil {
		return fmt.Errorf("starting what cleans up: %w", err)
	}
	c.alive = pipe
	return nil
}

// connect makes the network: the bridge, and a client beside the machines.
func (c *Cluster) connect() error {
	var err error
	if c.fabric, err = newFabric(); err != nil {
		return err
	}
	outside, err := netns.NewNamespace("outside")
	if err != nil {
		return err
	}
	c.outside = outside
	if err := c.fabric.plug(outside, outsideNumber, c.fabric.bridge); err != nil {
		return err
	}
	for i, spec := range c.options.Machines {
		c.machines = append(c.machines, newMachine(c, spec, firstNumber+byte(i)))
	}
	return nil
}

// Numbers in the network: the last part of addresses.
const (
	outsideNumber = 5
	firstNumber   = 10
)

func (c *Cluster) startControlPlane(ctx context.Context) error {
	begin := time.Now()
	o := c.options
	flags := o.ControllerManager
	if o.NodeGrace > 0 {
		flags = append([]string{"--node-monitor-period=" + (o.NodeGrace / 8).String()}, flags...)
	}
	var err error
	c.Cluster, err = nodes.Start(ctx, nodes.Options{
		Tools: c.tools, Dir: o.Dir, Namespace: c.fabric.Namespace, Addrs: c.fabric.Addrs, Machines: true,
		Manifests: o.Manifests, NodeGrace: o.NodeGrace, ControllerManager: flags,
	})
	if err != nil {
		return err
	}
	c.planeUp = time.Since(begin)
	return nil
}

// Close ends everything and removes what namespaces do not take with them.
func (c *Cluster) Close() error {
	var errs []error
	for _, m := range c.machines {
		errs = append(errs, m.off())
	}
	if c.Cluster != nil {
		c.Cluster.Close()
	}
	c.mu.Lock()
	for _, pod := range c.pods {
		errs = append(errs, pod.Close())
	}
	c.mu.Unlock()
	if c.outside != nil {
		errs = append(errs, c.outside.Close())
	}
	if c.fabric != nil {
		errs = append(errs, c.fabric.Close())
	}
	if c.alive != nil {
		errs = append(errs, c.alive.Close(), c.sweeper.Wait())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ending the cluster: %w", err)
	}
	return nil
}

// Machine returns a machine by name, or nil.
func (c *Cluster) Machine(name string) *Machine {
	i := slices.IndexFunc(c.machines, func(m *Machine) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return c.machines[i]
}

// Machines are all of them, in the order of Options.
func (c *Cluster) Machines() []*Machine { return slices.Clone(c.machines) }

// Outside is a client beside the machines, on their bridge; it is no Node.
func (c *Cluster) Outside() *netns.Namespace { return c.outside }

// APIServers are the addresses of the API servers, as machines and Pods in their network reach them.
func (c *Cluster) APIServers() []netip.AddrPort {
	var all []netip.AddrPort
	for _, a := range c.Cluster.APIServers() {
		all = append(all, a.Addr)
	}
	return all
}

// Values are what the Helm chart must know of this cluster, each as --set-json takes it.
func (c *Cluster) Values() []string {
	var servers []string
	for _, a := range c.APIServers() {
		servers = append(servers, strconv.Quote(a.String()))
	}
	return []string{"apiServers=[" + strings.Join(servers, ",") + "]", "clusterCIDR=" + strconv.Quote(ClusterCIDRs)}
}

// each does something for all machines at the same time.
func (c *Cluster) each(f func(*Machine) error) error {
	return wait.Each(c.machines, func(m *Machine) error {
		if err := f(m); err != nil {
			return fmt.Errorf("machine %s: %w", m.Name, err)
		}
		return nil
	})
}

// Renderer makes manifests of the chart with some values, each KEY=JSON.
type Renderer interface {
	Template(ctx context.Context, values ...string) (string, error)
}

const chartNamespace = "gridproxy"

// Install applies what helm makes of the chart for this cluster, with some further values, each
// KEY=JSON. Nothing of it may be running yet when this returns.
func (c *Cluster) Install(ctx context.Context, chart Renderer, values ...string) error {
	manifests, err := chart.Template(ctx, append(c.Values(), values...)...)
	if err != nil {
		return err
	}
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: " + chartNamespace + "}}\n---\n"
	_, err = c.KubectlIn(ctx, strings.NewReader(namespace+manifests), "apply", "--server-side", "--force-conflicts", "--filename=-")
	if err != nil {
		return fmt.Errorf("installing the chart: %w", err)
	}
	return nil
}
