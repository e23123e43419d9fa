package grids

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/promise"
	"gridproxy/integration/env/wait"
)

// asks is how many questions go to the Service from one place. That one of 5 endpoints never
// answers by chance has the probability 0.8^100, about 2 in 10^10.
const asks = 100

// startDaemons runs gridproxy on one Node of each unit. The other Nodes only pass packets on.
func (w *walk) startDaemons() {
	w.t.Helper()
	w.daemons = []string{"bj-1", "gz-1"}
	for _, name := range w.daemons {
		w.startDaemon(name)
	}
}

func (w *walk) startDaemon(name string) {
	w.t.Helper()
	healthz := netip.MustParseAddrPort("127.0.0.1:10256")
	node := w.lab.Node(name)
	daemon, err := node.Start(w.binary, "run", "--node-name", name, "--kubeconfig", w.Kubeconfig(),
		"--cluster-cidr", netns.ClusterCIDRs(), "--conntrack-max-per-core", "0", "--iptables-variant", "nft", "--status-socket=")
	must(w.t, err)
	wait.Until(w.t, "gridproxy on "+name+" is ready", func() error {
		page, err := node.Get(w.t.Context(), healthz, "/readyz")
		if err == nil && page.Code != http.StatusOK {
			err = fmt.Errorf("/readyz says %d: %s", page.Code, page.Text)
		}
		if err != nil {
			err = fmt.Errorf("%w; its log:\n%s", err, daemon.Log())
		}
		return err
	})
}

func (w *walk) rules(node string) []string {
	w.t.Helper()
	save, err := w.lab.Node(node).Save(w.t.Context(), "iptables-nft-save", "-t", "nat")
	must(w.t, err)
	return netns.RulesOf(save, "default/"+theService)
}

// wantClosed: from each Node with gridproxy, the Service is answered by every endpoint of that Node's unit and by no
// other; and not because the others could not be reached.
func (w *walk) wantClosed() {
	w.t.Helper()
	service := netip.AddrPortFrom(netip.MustParseAddr(w.service().Spec.ClusterIP), 80)
	for _, name := range w.daemons {
		inside, outside := w.divide(name)
		wait.Until(w.t, "the rules on "+name+" lead to "+fmt.Sprint(inside), func() error {
			to, err := netns.Endpoints(w.rules(name))
			return errors.Join(err, wait.Check(slices.Equal(to, inside), "they lead to %v", to))
		})
		for _, from := range []*netns.Namespace{w.lab.Client(name).Namespace, w.lab.Node(name).Namespace} {
			answered := w.ask(from, service)
			for _, other := range outside {
				if slices.Contains(answered, other) {
					promise.Broken(w.t, promise.Closure, "%s got an answer of %s, which is outside of its unit", from.Name, other)
				}
			}
			if !slices.Equal(answered, inside) {
				w.t.Errorf("%s got answers of %v, want all of %v and no other", from.Name, answered, inside)
			}
		}
		if _, err := w.lab.Client(name).Fetch(w.t.Context(), outside[0]); err != nil {
			w.t.Errorf("the endpoint of another unit cannot even be reached directly: %v", err)
		}
	}
}

// divide are the endpoints in a Node's unit and the others, each sorted.
func (w *walk) divide(node string) (inside, outside []netip.AddrPort) {
	w.t.Helper()
	unit := w.label(node, netns.UnitKey)
	for addr, at := range w.endpoints() {
		side := &outside
		if w.label(at, netns.UnitKey) == unit {
			side = &inside
		}
		*side = append(*side, netip.AddrPortFrom(addr, netns.EchoPort))
	}
	slices.SortFunc(inside, netip.AddrPort.Compare)
	slices.SortFunc(outside, netip.AddrPort.Compare)
	return inside, outside
}

// ask is who answers, sorted.
func (w *walk) ask(from *netns.Namespace, service netip.AddrPort) []netip.AddrPort {
	w.t.Helper()
	var answered []netip.AddrPort
	for range asks {
		a, err := from.Fetch(w.t.Context(), service)
		if err != nil {
			w.t.Errorf("asking from %s: %v", from.Name, err)
			break
		}
		answered = append(answered, netip.AddrPortFrom(netip.MustParseAddr(a.Pod), netns.EchoPort))
	}
	slices.SortFunc(answered, netip.AddrPort.Compare)
	return slices.Compact(answered)
}

// wantNoRules: the daemon writes nothing for a headless Service.
func (w *walk) wantNoRules() {
	w.t.Helper()
	for _, name := range w.daemons {
		wait.Until(w.t, "the Service has no rules on "+name, func() error {
			rules := w.rules(name)
			return wait.Check(len(rules) == 0, "it has %q", rules)
		})
	}
}
