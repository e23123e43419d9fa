package node

import (
	"context"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestDaemon: from the older daemon to today's and back. Every connection is answered in the unit
// all the while, an open one goes on, and the rules are those that each daemon writes on an empty
// node.
func TestDaemon(t *testing.T) {
	need.IPTables(t)
	before, today := releases(t)
	for _, variant := range []string{"nft", "legacy"} {
		t.Run(variant, func(t *testing.T) {
			w := newUpgradedNode(t, variant)
			w.run(before)
			original := w.rules()

			client := &traffic.Client{Who: traffic.OfLab}
			way := traffic.Way{Name: "closed", From: w.Client(here).Namespace, To: address(closedIP)}
			inUnit := []string{"beijing-wrx7r", "beijing-v9zdr"}
			open, err := client.Hold(inUnit, way)
			must(t, err)
			defer traffic.End(open)
			calls := client.CallInTurn(way)
			defer calls.End()

			var upgraded []string
			for _, next := range []release{today, before, today} {
				must(t, calls.More(w.ctx, 50))
				w.stop()
				must(t, calls.More(w.ctx, 50))
				w.run(next)
				must(t, calls.More(w.ctx, 50))
				must(t, traffic.Alive(w.ctx, 1, open...))
				if next == today {
					upgraded = w.rules()
				} else if diff := cmp.Diff(original, w.rules()); diff != "" {
					t.Errorf("the older daemon, started again after today's, leaves other rules (-original +now):\n%s", diff)
				}
			}
			calls.End()
			must(t, calls.AnsweredBy(inUnit...))
			w.stop()

			w.node(today.gridproxy, "cleanup", "--iptables-variant", variant)
			if left := w.rules(); len(left) > 0 {
				t.Errorf("today's cleanup leaves rules of the older daemon:\n%s", strings.Join(left, "\n"))
			}
			w.run(today)
			if diff := cmp.Diff(w.rules(), upgraded); diff != "" {
				t.Errorf("after the upgrade the rules differ from those on an empty node (-empty +upgraded):\n%s", diff)
			}
		})
	}
}

// The cluster IPs of the node's Services.
const (
	closedIP   = "10.96.0.10"
	openIP     = "10.96.0.11"
	refusedIP  = "10.96.0.12"
	affinityIP = "10.96.0.13"
)

func address(ip string) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(ip), 80) }

// upgradedNode is a small cluster with one Service of each kind whose chains differ.
type upgradedNode struct {
	*netns.Lab
	t         *testing.T
	ctx       context.Context
	variant   string
	manifests *netns.Manifests
	daemon    *netns.Gridproxy
}

func newUpgradedNode(t *testing.T, variant string) *upgradedNode {
	t.Helper()
	layout := netns.Manual().Only(here, "bj-3", "gz-2")
	l := netns.ForTest(t, layout)
	w := &upgradedNode{Lab: l, t: t, ctx: (2 * wait.Usual).Context(t), variant: variant, manifests: netns.NewManifests(t.TempDir(), layout)}
	everywhere := []*netns.Pod{l.Pod("beijing-wrx7r"), l.Pod("beijing-v9zdr"), l.Pod("guangzhou-hhmt2")}
	w.serve("closed", closedIP, everywhere, confine)
	w.serve("open", openIP, everywhere, func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort; s.Spec.Ports[0].NodePort = 30080 })
	w.serve("refused", refusedIP, everywhere[2:], confine)
	w.serve("affinity", affinityIP, everywhere, confine, func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	must(t, w.manifests.Write())
	return w
}

func confine(s *corev1.Service) { netns.Confine(s, `["location"]`) }

func (w *upgradedNode) serve(name, ip string, pods []*netns.Pod, change ...func(*corev1.Service)) {
	s := netns.NewService(name, netip.MustParseAddr(ip))
	s.Spec.Ports = []corev1.ServicePort{netns.EchoServicePort("web", corev1.ProtocolTCP)}
	for _, c := range change {
		c(s)
	}
	w.manifests.Serve(s, pods...)
}

// run starts a release's daemon and waits until its rules are written.
func (w *upgradedNode) run(r release) {
	w.t.Helper()
	var err error
	w.daemon, err = w.Node(here).RunGridproxy(r.gridproxy, w.manifests.Dir,
		slices.DeleteFunc([]string{"--iptables-variant", w.variant, "--cluster-cidr", netns.ClusterCIDRs(), r.flag}, func(s string) bool { return s == "" })...)
	must(w.t, err)
	must(w.t, w.daemon.Ready(w.ctx))
}

func (w *upgradedNode) stop() {
	w.t.Helper()
	must(w.t, w.daemon.Stop(w.ctx))
}

// node runs a program on the node.
func (w *upgradedNode) node(name string, args ...string) {
	w.t.Helper()
	if _, err := w.Node(here).Run(w.ctx, nil, name, args...); err != nil {
		w.t.Fatal(err)
	}
}

var packetCounters = regexp.MustCompile(` \[\d+:\d+\]$`)

// rules are all rules of both families, sorted, without counters; the fixed chains of the kernel
// are no rules.
func (w *upgradedNode) rules() []string {
	w.t.Helper()
	var all []string
	for _, tool := range []string{"iptables", "ip6tables"} {
		text, err := w.Node(here).Save(w.ctx, tool+"-"+w.variant+"-save")
		must(w.t, err)
		table := ""
		for line := range strings.Lines(text) {
			line = packetCounters.ReplaceAllString(strings.TrimSpace(line), "")
			switch {
			case strings.Contains(line, "KUBE-FIREWALL"): // shared with the kubelet, and never removed
			case strings.HasPrefix(line, "*"):
				table = line
			case strings.HasPrefix(line, "-A"), strings.HasPrefix(line, ":") && strings.HasSuffix(line, " -"):
				all = append(all, tool+" "+table+" "+line)
			}
		}
	}
	slices.Sort(all)
	return all
}
