package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"gridproxy/integration/env/program"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/promise"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

// world is a lab, the manifests that describe it, and the daemons on its nodes.
type world struct {
	*netns.Lab
	*netns.Manifests
	t       *testing.T
	backend backend
	program string // gridproxy
	daemons map[string]*netns.Gridproxy

	// changing says that something changed since the daemons said that they are ready.
	// What is wanted may then take a while; before, it must be so at once.
	changing bool
}

// newWorld builds the manual's cluster, or only some of its nodes, without any Service and
// without any daemon.
func newWorld(t *testing.T, b backend, nodes ...string) *world {
	t.Helper()
	layout := netns.Manual()
	if len(nodes) > 0 {
		layout = layout.Only(nodes...)
	}
	l, err := netns.New(layout)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Lab: l, Manifests: netns.NewManifests(t.TempDir(), layout), t: t, backend: b, daemons: map[string]*netns.Gridproxy{}}
	t.Cleanup(func() {
		if t.Failed() {
			w.dump()
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	w.program = program.ForTest(t, program.Gridproxy)
	return w
}

// dump logs what a failure is understood by.
func (w *world) dump() {
	for name, d := range w.daemons {
		w.t.Logf("log of gridproxy on %s:\n%s", name, d.Log())
		for _, f := range netns.Families() {
			if save, err := w.Lab.Node(name).Save(context.Background(), w.tool(f, "-save"), "-c"); err != nil {
				w.t.Log(err)
			} else if len(save) < 20_000 {
				w.t.Logf("%s, %s:\n%s", name, f, save)
			}
		}
		if w.backend.mode == modeIPVS {
			w.t.Logf("%s, IPVS:\n%s", name, w.ipvsText(name))
		}
	}
}

// must ends the test on an error.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// holds ends the test if ask returns an error: at once, or, while a change takes effect, if
// it never stops to.
func (w *world) holds(ask func(context.Context) error) {
	w.t.Helper()
	if w.changing {
		w.must(wait.Usual.For(w.t.Context(), ask))
		return
	}
	err := ask(w.t.Context())
	if errors.Is(err, netns.ErrOther) {
		promise.Broken(w.t, promise.Closure, "while nothing changes: %v", err)
	}
	w.must(err)
}

// apply writes the manifests as they are now, and from then on their effect is waited for.
func (w *world) apply() {
	w.t.Helper()
	w.changing = true
	w.must(w.Write())
}

// run starts gridproxy on nodes and waits until each has written its rules, which from then
// on must hold.
func (w *world) run(nodes []string, flags ...string) {
	w.t.Helper()
	w.runProgram(w.program, nodes, flags...)
}

// runProgram does what run does with a program that runs gridproxy.
func (w *world) runProgram(program string, nodes []string, flags ...string) {
	w.t.Helper()
	w.apply()
	flags = slices.Concat(w.backend.flags(), []string{"--verify-period", verifyPeriod(), "-v", "4"}, flags)
	for _, name := range nodes {
		d, err := w.Lab.Node(name).RunGridproxy(program, w.Dir, append(slices.Clone(flags), netns.NoStatusSocket)...)
		w.must(err)
		w.daemons[name] = d
	}
	ctx := wait.Usual.Context(w.t)
	for _, name := range nodes {
		w.must(w.daemons[name].Ready(ctx))
	}
	w.changing = false
}

// stop ends the daemon of a node, in good order or not.
func (w *world) stop(node string, kill bool) {
	w.t.Helper()
	if kill {
		w.daemons[node].Kill()
		return
	}
	w.must(w.daemons[node].Stop(wait.Usual.Context(w.t)))
}

// detect is the flag by which the nodes know their Pods.
func detect() []string { return []string{"--cluster-cidr", netns.ClusterCIDRs()} }

// tool is the name of an iptables program of this variant: tool(IPv6, "-save") is
// ip6tables-nft-save.
func (w *world) tool(f netns.Family, suffix string) string {
	if f == netns.IPv6 {
		return "ip6tables-" + w.backend.variant + suffix
	}
	return "iptables-" + w.backend.variant + suffix
}

// paused runs do while a node's daemon is stopped and no tool of it runs. A damage in several steps
// would otherwise meet, on a busy machine, the repair of its first step.
func (w *world) paused(node string, do func()) {
	w.t.Helper()
	pid := w.daemons[node].PID()
	w.must(syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { w.must(syscall.Kill(pid, syscall.SIGCONT)) }()
	wait.Until(w.t, "the tools of the daemon on "+node+" have ended", func() error { return childless(pid) })
	do()
}

// childless is an error while a process has children that have not ended.
func childless(pid int) error {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) && fields[0] != "Z" {
			return fmt.Errorf("process %d still has a child: %s", pid, stat)
		}
	}
	return err
}

// restore loads rules on a node beside those that are there.
func (w *world) restore(node string, f netns.Family, text string) {
	w.t.Helper()
	_, err := w.Lab.Node(node).Run(w.t.Context(), bytes.NewBufferString(text), w.tool(f, "-restore"), "-w", "5", "--noflush")
	w.must(err)
}

// save is what a node's kernel holds, comments and counters left out.
func (w *world) save(node string, f netns.Family) []string {
	w.t.Helper()
	text, err := w.Lab.Node(node).Save(w.t.Context(), w.tool(f, "-save"))
	w.must(err)
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, ":") {
			line, _, _ = strings.Cut(line, " [") // counters of built-in chains move by themselves
		}
		lines = append(lines, line)
	}
	return lines
}

// endpoint is the Pod on a node that serves in the manual, else the node's client Pod.
func (w *world) endpoint(node string) *netns.Pod {
	for _, p := range w.Pods() {
		if p.Spec.Node == node && p.Name != netns.ClientOn(node) {
			return p
		}
	}
	return w.Client(node)
}

func (w *world) endpoints(nodes ...string) []*netns.Pod {
	var pods []*netns.Pod
	for _, n := range nodes {
		pods = append(pods, w.endpoint(n))
	}
	return pods
}

// newService is a Service of both families and both protocols, closed by location, whose
// addresses all end in last.
func newService(name string, last byte) *corev1.Service {
	s := netns.NewService(name, vip(netns.IPv4, last).Addr(), vip(netns.IPv6, last).Addr())
	s.Spec.Ports = []corev1.ServicePort{
		netns.EchoServicePort("tcp", corev1.ProtocolTCP),
		netns.EchoServicePort("udp", corev1.ProtocolUDP),
	}
	netns.Confine(s, `["location"]`)
	return s
}

// vip is a cluster IP with the Service's port; balancer and external are the addresses of
// the other frontends.
func vip(f netns.Family, last byte) netip.AddrPort {
	return frontend(f, netip.AddrFrom4([4]byte{172, 16, 33, last}), "fd00:99::", last)
}

func balancer(f netns.Family, last byte) netip.AddrPort {
	return frontend(f, netip.AddrFrom4([4]byte{198, 51, 100, last}), "2001:db8:b::", last)
}

func external(f netns.Family, last byte) netip.AddrPort {
	return frontend(f, netip.AddrFrom4([4]byte{192, 0, 2, last}), "2001:db8:e::", last)
}

func frontend(f netns.Family, v4 netip.Addr, v6 string, last byte) netip.AddrPort {
	if f == netns.IPv4 {
		return netip.AddrPortFrom(v4, 80)
	}
	return netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("%s%x", v6, last)), 80)
}

const nodePort = 30080

// expose gives a Service every kind of frontend there is: NodePorts, an ExternalIP and the
// address of a load balancer.
func expose(s *corev1.Service, last byte) {
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = nodePort
	}
	for _, f := range netns.Families() {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, external(f, last).Addr().String())
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress,
			corev1.LoadBalancerIngress{IP: balancer(f, last).Addr().String()})
	}
}

// nodePortOn is the NodePort on a node's own address.
func (w *world) nodePortOn(node string, f netns.Family) netip.AddrPort {
	return netip.AddrPortFrom(w.Lab.Node(node).Addr(f), nodePort)
}

// routeAllVia sends what the client outside sends to Services through one node.
func (w *world) routeAllVia(node string) {
	w.t.Helper()
	for _, f := range netns.Families() {
		for _, a := range []netip.AddrPort{vip(f, 0), balancer(f, 0), external(f, 0)} {
			bits := 24
			if f == netns.IPv6 {
				bits = 64
			}
			w.must(w.RouteVia(netip.PrefixFrom(a.Addr(), bits).Masked(), w.Lab.Node(node)))
		}
	}
}

// relabel moves a node to another unit, or out of all with "", and applies it.
func (w *world) relabel(node, unit string) {
	w.t.Helper()
	labels := w.Manifests.Node(node).Labels
	if labels[netns.UnitKey] = unit; unit == "" {
		delete(labels, netns.UnitKey)
	}
	w.apply()
}

// sameRules compares two saves where the order of rules inside a shared chain of ours
// decides nothing: as sets of lines.
func sameRules(got, want []string) error {
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	var errs []error
	for _, line := range want {
		if !slices.Contains(got, line) {
			errs = append(errs, fmt.Errorf("missing: %s", line))
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			errs = append(errs, fmt.Errorf("too much: %s", line))
		}
	}
	if len(errs) == 0 && !slices.Equal(got, want) {
		errs = append(errs, errors.New("a line is there twice"))
	}
	return errors.Join(errs...)
}
