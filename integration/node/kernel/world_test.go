package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

// world is a lab with daemons that write what they enforce with one backend.
type world struct {
	*netns.World
	t       *testing.T
	backend backend

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
	return &world{World: netns.NewWorld(t, b.variant, layout), t: t, backend: b}
}

// holds ends the test if ask returns an error: at once, or, while a change takes effect, if
// it never stops to.
func (w *world) holds(ask func(context.Context) error) {
	w.t.Helper()
	if w.changing {
		w.Must(wait.Usual.For(w.t.Context(), ask))
		return
	}
	err := wait.Usual.Do(w.t.Context(), ask)
	if errors.Is(err, netns.ErrOther) {
		promise.Broken(w.t, promise.Closure, "while nothing changes: %v", err)
	}
	w.Must(err)
}

// apply writes the manifests as they are now, and from then on their effect is waited for.
func (w *world) apply() {
	w.t.Helper()
	w.changing = true
	w.Must(w.Write())
}

// run starts gridproxy on nodes and waits until each has written its rules, which from then
// on must hold.
func (w *world) run(nodes []string, flags ...string) {
	w.t.Helper()
	w.runProgram(w.Program, nodes, flags...)
}

// runProgram does what run does with a program that runs gridproxy.
func (w *world) runProgram(program string, nodes []string, flags ...string) {
	w.t.Helper()
	w.Run(program, nodes, slices.Concat(w.backend.flags(), []string{"--verify-period", verifyPeriod()}, flags)...)
	w.changing = false
}

// detect is the flag by which the nodes know their Pods.
func detect() []string { return []string{"--cluster-cidr", netns.ClusterCIDRs()} }

// paused runs do while a node's daemon is stopped and no tool of it runs. A damage in several steps
// would otherwise meet, on a busy machine, the repair of its first step.
func (w *world) paused(node string, do func()) {
	w.t.Helper()
	pid := w.Daemons[node].PID()
	w.Must(syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { w.Must(syscall.Kill(pid, syscall.SIGCONT)) }()
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
	w.Command(node, text, w.Tool(f, "-restore"), "-w", "5", "--noflush")
}

func (w *world) endpoints(nodes ...string) []*netns.Pod {
	var pods []*netns.Pod
	for _, n := range nodes {
		pods = append(pods, w.Endpoint(n))
	}
	return pods
}

const nodePort = 30080

// newExposed returns a closed Service with every kind of frontend there is: NodePorts, an
// ExternalIP and the address of a load balancer.
func newExposed(name string, last byte) *corev1.Service {
	s := netns.NewClosedService(name, last)
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = nodePort
	}
	for _, f := range netns.Families() {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, netns.External(f, last).Addr().String())
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress,
			corev1.LoadBalancerIngress{IP: netns.Balancer(f, last).Addr().String()})
	}
	return s
}

func (w *world) nodePortOn(node string, f netns.Family) netip.AddrPort {
	return netip.AddrPortFrom(w.Lab.Node(node).Addr(f), nodePort)
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

// dial opens a TCP connection that stays open to the end of the test.
func (w *world) dial(from *netns.Namespace, to netip.AddrPort) *traffic.Dialogue {
	w.t.Helper()
	conn, err := from.Dial(wait.Usual.Context(w.t), "tcp", to)
	w.Must(err)
	w.t.Cleanup(func() { conn.Close() })
	return (&traffic.Client{Who: traffic.OfLab}).Over(conn)
}

// still wants this Pod to answer on an open connection.
func (w *world) still(open *traffic.Dialogue, pod string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), answerDeadline)
	defer cancel()
	if now, err := open.Ask(ctx); err != nil || now != pod {
		w.t.Fatalf("on an open connection %q answers (%v), want %s as before", now, err, pod)
	}
}
