package node

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestTakeover goes from kube-proxy's rules to ours in three steps, each looked at alone: a first sync
// with the same endpoints, one more after comments and counters were changed by hand, and one with
// closure, under connections that stay open over all of it.
func TestTakeover(t *testing.T) {
	eachVariant(t, func(t *testing.T, w *takenNode, _ string) {
		w.letKubeProxyWrite()
		written := w.saves()
		tools := w.watchTools()
		t.Setenv("PATH", tools.dir+":"+os.Getenv("PATH"))
		open := w.hold()

		changes := w.sync(w.newBackend(), w.snapshot())
		w.expectNothing("a first sync with kube-proxy's own endpoints", changes, tools, written)

		reworded := w.recomment()
		tools.writes(t) // the test's own
		changes = w.sync(w.newBackend(), w.snapshot())
		w.expectNothing("a sync after comments and counting matches were changed", changes, tools, reworded)

		w.sync(w.newBackend(), closed(w.snapshot()))
		w.expectOneRestorePerFamily(tools)
		w.expectOnlyClosedChanged(reworded, w.saves())
		must(w.t, traffic.Alive(w.ctx, 1, open...))
		w.expectClosed()
	})
}

// snapshot is the cluster and this node as they are, without the daemon's own sources.
func (w *takenNode) snapshot() topology.Snapshot {
	w.t.Helper()
	s := topology.Snapshot{Node: here, Nodes: map[string]labels.Set{}}
	nodes, err := w.api.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
	must(w.t, err)
	for i := range nodes.Items {
		s.Nodes[nodes.Items[i].Name] = nodes.Items[i].Labels
		if nodes.Items[i].Name == here {
			s.Self = &nodes.Items[i]
		}
	}
	services, err := w.api.CoreV1().Services("").List(w.ctx, metav1.ListOptions{})
	must(w.t, err)
	for i := range services.Items {
		s.Services = append(s.Services, &services.Items[i])
	}
	endpoints, err := w.api.DiscoveryV1().EndpointSlices("").List(w.ctx, metav1.ListOptions{})
	must(w.t, err)
	for i := range endpoints.Items {
		s.Slices = append(s.Slices, topology.NewSlice(&endpoints.Items[i]))
	}
	must(w.t, w.node.Do(func() (err error) {
		s.Host, err = host.Read()
		return err
	}))
	return s
}

// closed returns the cluster after a user has closed the Services that are named so.
func closed(s topology.Snapshot) topology.Snapshot {
	s.Services = slices.Clone(s.Services)
	for i, svc := range s.Services {
		if isClosed(svc.Name) {
			svc = svc.DeepCopy()
			metav1.SetMetaDataAnnotation(&svc.ObjectMeta, "topologyKeys", fmt.Sprintf("[%q]", netns.UnitKey))
			s.Services[i] = svc
		}
	}
	return s
}

func isClosed(name string) bool { return strings.HasPrefix(name, "closed-") }

func (w *takenNode) newBackend() *iptables.Backend {
	w.t.Helper()
	var b *iptables.Backend
	must(w.t, w.node.Do(func() (err error) {
		b, err = iptables.New(w.ctx, iptables.Config{Variant: netfilter.Variant(w.variant), MasqueradeBit: 14})
		return err
	}))
	return b
}

// sync is what the daemon's first run does.
func (w *takenNode) sync(b *iptables.Backend, s topology.Snapshot) rules.Changes {
	w.t.Helper()
	var prefixes []netip.Prefix
	for text := range strings.SplitSeq(netns.ClusterCIDRs(), ",") {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	want := rules.Compile(topology.Resolve(s, topology.Config{}), rules.Config{
		LocalhostNodePorts: true,
		DetectLocal:        rules.DetectLocal{Mode: rules.DetectClusterCIDR, ClusterCIDRs: prefixes},
	})
	var changes rules.Changes
	must(w.t, w.node.Do(func() (err error) {
		changes, err = b.Sync(w.ctx, want, true)
		return err
	}))
	return changes
}

// expectNothing wants that nothing was written, by the kernel's account, the tools' and the backend's.
func (w *takenNode) expectNothing(what string, changes rules.Changes, tools counters, before map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.saves()); diff != "" {
		w.t.Errorf("%s changed the kernel (-before +after):\n%s", what, diff)
	}
	if writes := tools.writes(w.t); len(writes) > 0 {
		w.t.Errorf("%s ran: %q", what, writes)
	}
	if changes.Chains != 0 || changes.Rules != 0 {
		w.t.Errorf("%s says that it wrote: %+v", what, changes)
	}
}

func (w *takenNode) expectOneRestorePerFamily(tools counters) {
	w.t.Helper()
	restores := map[string]int{}
	for _, run := range tools.writes(w.t) {
		restores[strings.Fields(run)[0]]++
	}
	want := map[string]int{}
	for _, family := range families {
		want[fmt.Sprintf("%s-%s-restore", family, w.variant)] = 1
	}
	if diff := cmp.Diff(want, restores); diff != "" {
		w.t.Errorf("writes of the sync with closure (-want +got):\n%s", diff)
	}
}
