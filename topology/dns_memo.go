package topology

import (
	"slices"

	"gridproxy/topology/changes"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DNSMemo is to ResolveDNS what Memo is to Resolve: it remembers the last DNSView and decides only
// about the Services whose inputs have changed since. A DNSService whose inputs did not change is
// the same pointer as before. The zero value is ready for use. One goroutine may use it.
type DNSMemo struct {
	tracker
	view     DNSView // of the last Snapshot
	children *gridChildren
	addrs    addrHolders
}

// Resolve returns the same as the function ResolveDNS, faster.
func (m *DNSMemo) Resolve(s Snapshot, c Config) DNSView {
	if m.startOver(s, c) {
		*m = DNSMemo{tracker: newTracker(s, c), addrs: addrHolders{}, children: newGridChildren(s.Grids)}
	}
	m.take(s, labelledService)
	m.takeAddrs(s)
	m.takeGrids(s)
	d := dnsInputs{observer: newObserver(s, c), children: m.children, addrs: m.addrs}
	view := DNSView{Node: s.Node, Namespaces: s.Namespaces}
	view.Services = decided(&m.tracker, m.view.Services,
		func(svc *DNSService, name types.NamespacedName) int { return CompareServices(svc.Service, name) },
		func(e *memory) []*DNSService { return []*DNSService{d.resolve(e.svc, e.slices, e.confined)} })
	m.snapshot, m.view = s, view
	return view
}

// takeAddrs updates addrs, and marks the Services that share a cluster IP with a changed one.
func (m *DNSMemo) takeAddrs(s Snapshot) {
	note := func(svc *corev1.Service) {
		for _, addr := range clusterAddrs(svc) {
			for _, other := range m.addrs[addr] {
				m.memory(NameOf(other))
			}
		}
	}
	for old, now := range changes.Between(m.snapshot.Services, s.Services, CompareObjects) {
		if old != nil {
			m.addrs.remove(old)
			note(old)
		}
		if now != nil {
			note(now)
			m.addrs.add(now)
		}
	}
}

// takeGrids marks the Services with keys in a namespace whose Grids have changed: only these
// have aliases. Changed Grids or labels of this node also make m.children again.
func (m *DNSMemo) takeGrids(s Snapshot) {
	same := changes.None(m.snapshot.Grids, s.Grids)
	if !same || !sameMap(m.snapshot.Nodes[s.Node], s.Nodes[s.Node]) {
		m.children = newGridChildren(s.Grids) // no units of before stay
	}
	if same {
		return
	}
	namespaces := map[string]bool{}
	note := func(all, without []types.NamespacedName) {
		for _, g := range all {
			if _, found := slices.BinarySearchFunc(without, g, CompareServices); !found {
				namespaces[g.Namespace] = true
			}
		}
	}
	note(m.snapshot.Grids, s.Grids)
	note(s.Grids, m.snapshot.Grids)
	for _, e := range m.services {
		if len(e.confined.keys) > 0 && namespaces[e.name.Namespace] {
			m.mark(e)
		}
	}
}
