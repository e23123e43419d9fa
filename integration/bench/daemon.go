package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"

	"k8s.io/client-go/rest"
)

type daemon struct {
	*apiserver.Child
	proxy   proxy
	variant apiserver.Variant
	node    *netns.Node
	settled time.Time // when its cold start was over
}

// start starts a program on its node, and returns the time just before.
func (w *world) start(p proxy, v apiserver.Variant, flags ...string) (*daemon, time.Time, error) {
	d := &daemon{proxy: p, variant: v, node: w.lab.Node(nodeOf(p, v))}
	dir := filepath.Join(w.dir, d.node.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, time.Time{}, fmt.Errorf("making a folder for %s: %w", d.node.Name, err)
	}
	api := protobuf(w.cluster.Admin())
	begin := time.Now()
	var err error
	if p == kubeProxy {
		d.Child, err = apiserver.KubeProxy{
			Tools: w.cluster.Tools(), Dir: dir, Namespace: d.node, API: api, Node: d.node.Name,
			Variant: v, ClusterCIDRs: netns.ClusterCIDRs(), Env: d.node.Env,
		}.Start()
	} else {
		flags = append([]string{"--iptables-variant=" + string(v), "--kube-api-qps=50", "--kube-api-burst=100"}, flags...)
		if w.profile != "" {
			flags = append(flags, "--profiling")
		}
		d.Child, err = startGridproxy(w.binary, dir, d.node, w.cluster.Admin(), w.env, flags...)
	}
	return d, begin, err
}

func startGridproxy(binary, dir string, node *netns.Node, api *rest.Config, env []string, flags ...string) (*apiserver.Child, error) {
	config, err := apiserver.WriteKubeconfig(dir, "gridproxy.kubeconfig", api)
	if err != nil {
		return nil, err
	}
	args := []string{
		"run", "--node-name=" + node.Name, "--kubeconfig=" + config, "--cluster-cidr=" + netns.ClusterCIDRs(),
		"--iptables-min-sync-period=0s", "--conntrack-max-per-core=0",
	}
	return apiserver.StartChild(apiserver.Spec{
		Name: "gridproxy", Path: binary, Args: append(args, flags...), Env: slices.Concat(node.Env, env), Dir: dir, Namespace: node,
	})
}

// stop ends the program as a node's shutdown does.
func (d *daemon) stop() { d.Stop(syscall.SIGTERM, 10*time.Second) }

func (d *daemon) alive() error { return alive(string(d.proxy), d.Child) }

// alive returns an error that shows the log if a program has ended.
func alive(name string, c *apiserver.Child) error {
	select {
	case <-c.Done():
		return fmt.Errorf("%s has ended; the end of its log:\n%s", name, c.Tail(20))
	default:
		return nil
	}
}

// wipe empties the tables of a node, so that the next start finds nothing.
func (w *world) wipe(ctx context.Context, p proxy, v apiserver.Variant) error {
	const nothing = "*filter\nCOMMIT\n*nat\nCOMMIT\n*mangle\nCOMMIT\n"
	var errs []error
	for _, family := range []string{"iptables", "ip6tables"} {
		_, err := w.lab.Node(nodeOf(p, v)).Run(ctx, strings.NewReader(nothing), fmt.Sprintf("%s-%s-restore", family, v))
		errs = append(errs, err)
	}
	return errors.Join(append(errs, w.forgetFlows(ctx, w.lab.Node(nodeOf(p, v))))...)
}

// forgetFlows empties a node's connection tracking. An attempt from before its Service had rules is
// remembered for two minutes as a flow that is not to be translated, and a later one from the same port
// would be taken for it.
func (w *world) forgetFlows(ctx context.Context, node *netns.Node) error {
	_, err := node.Run(ctx, nil, "conntrack", "-F")
	return err
}

// services are the cluster IP entries of nat's KUBE-SERVICES, in the order of the list.
func (d *daemon) services(ctx context.Context) ([]string, error) {
	save, err := d.node.Save(ctx, fmt.Sprintf("iptables-%s-save", d.variant), "-t", "nat")
	if err != nil {
		return nil, err
	}
	var entries []string
	for line := range strings.Lines(save) {
		if strings.HasPrefix(line, "-A KUBE-SERVICES ") && strings.Contains(line, "-j KUBE-SVC-") {
			entries = append(entries, line)
		}
	}
	return entries, nil
}

// processorTime is what the program and the programs that it ran and waited for have used.
func (d *daemon) processorTime() (time.Duration, error) {
	t, err := processorTimeOf(d.PID())
	if err != nil {
		return 0, errors.Join(err, d.alive())
	}
	return t.own + t.started, nil
}

// processorTime is what a process has used, and the programs that it ran and waited for.
type processorTime struct{ own, started time.Duration }

func processorTimeOf(pid int) (t processorTime, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return t, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	_, rest, _ := strings.Cut(string(content), ") ") // behind the name, which may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return t, fmt.Errorf("reading the processor time of process %d: %q has too few fields", pid, content)
	}
	for i, sum := range []*time.Duration{&t.own, &t.own, &t.started, &t.started} { // utime, stime, cutime, cstime
		ticks, err := strconv.Atoi(fields[11+i])
		if err != nil {
			return t, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
		}
		*sum += time.Duration(ticks) * (time.Second / userHz)
	}
	return t, nil
}

// userHz is the unit of times in /proc, the same on all architectures that gridproxy runs on.
const userHz = 100

// received counts the bytes that have come to the node from outside, in packets of any kind.
func received(n *netns.Node) (total int, err error) {
	err = n.Do(func() error {
		content, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return fmt.Errorf("counting what %s received: %w", n.Name, err)
		}
		for line := range strings.Lines(string(content)) {
			name, counts, isLink := strings.Cut(line, ":")
			if !isLink || strings.TrimSpace(name) == "lo" {
				continue
			}
			count, err := strconv.Atoi(strings.Fields(counts)[0])
			if err != nil {
				return fmt.Errorf("counting what %s received: %w", n.Name, err)
			}
			total += count
		}
		return nil
	})
	return total, err
}

// memory is what a process holds, in bytes.
type memory struct{ peak, resident, anonymous int }

func (d *daemon) memory() (memory, error) { return memoryOf(d.PID()) }

func memoryOf(pid int) (memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("reading how much memory process %d holds: %w", pid, err)
	}
	var m memory
	for line := range strings.Lines(string(content)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			m.resident = kb << 10
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			m.peak = kb << 10
		}
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kb); n == 1 {
			m.anonymous = kb << 10
		}
	}
	if m.resident == 0 {
		return memory{}, fmt.Errorf("process %d has no VmRSS", pid)
	}
	return m, nil
}
