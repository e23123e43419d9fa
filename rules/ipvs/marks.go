package ipvs

import (
	"net/netip"
	"slices"

	"gridproxy/rules/netfilter"
)

// marks tell whose a server is by what else the kernel holds.
type marks struct {
	Observed
	names   *setNames
	exclude []netip.Prefix
	known   map[netip.Addr]struct{} // the addresses of which sets list any server; nil until needed
}

// has reports whether something in the kernel says that a server is ours: a set of ours or of
// kube-proxy's lists it, or its address is on our link and no set lists any server there, as
// after a flush. Where sets do list others, one that they do not list is somebody else's. On an
// excluded address only our own sets count.
func (m *marks) has(key ServerKey) bool {
	if m.listed(key) {
		return true
	}
	if inside(m.exclude, key.Addr.Addr()) {
		return false
	}
	if m.listedByKubeProxy(key) {
		return true
	}
	if _, onLink := m.Addresses[key.Addr.Addr()]; !onLink {
		return false
	}
	_, known := m.knownAddresses()[key.Addr.Addr()]
	return !known
}

// listed reports whether one of our own sets has a server.
func (m *marks) listed(key ServerKey) bool {
	n := m.names.of(key)
	for _, set := range []string{n.clusterIP, n.externalIP, n.externalIPLocal} {
		if _, listed := m.Entries[entryOfServer(set, key)]; listed {
			return true
		}
	}
	return false
}

// listedByKubeProxy reports whether a set that only kube-proxy has lists a server: by its
// address, or by its port alone, on which kube-proxy has servers on every address of the node.
func (m *marks) listedByKubeProxy(key ServerKey) bool {
	n := m.names.of(key)
	for _, set := range n.kubeProxy {
		if _, listed := m.Entries[entryOfServer(set, key)]; listed {
			return true
		}
	}
	for _, set := range n.nodePorts[key.Proto] {
		if _, listed := m.Entries[Entry{Set: set, Port: key.Addr.Port()}]; listed {
			return true
		}
	}
	return false
}

func (m *marks) knownAddresses() map[netip.Addr]struct{} {
	if m.known != nil {
		return m.known
	}
	m.known = map[netip.Addr]struct{}{}
	for e := range m.Entries {
		if !e.Net.IsValid() || e.Port == 0 {
			continue
		}
		n := &m.names[familyOf(e.Net.Addr())]
		if e.Set == n.clusterIP || e.Set == n.externalIP || e.Set == n.externalIPLocal || slices.Contains(n.kubeProxy, e.Set) {
			m.known[e.Net.Addr()] = struct{}{}
		}
	}
	return m.known
}

// entryOfServer is the entry that makes a server ours.
func entryOfServer(set string, key ServerKey) Entry {
	a := key.Addr.Addr()
	return Entry{Set: set, Net: netip.PrefixFrom(a, a.BitLen()), Proto: key.Proto, Port: key.Addr.Port()}
}

// serverOfEntry is the server that an entry makes ours.
func serverOfEntry(e Entry) ServerKey {
	return ServerKey{Addr: netip.AddrPortFrom(e.Net.Addr(), e.Port), Proto: e.Proto}
}

// familyNames are the names of the sets of one family, made once.
type familyNames struct {
	clusterIP, externalIP, externalIPLocal, loopBack, ips, chains string

	kubeProxy []string                     // sets that only kube-proxy has
	nodePorts map[netfilter.Proto][]string // those of them that are of port numbers
}

type setNames [2]familyNames

func newSetNames() setNames {
	var names setNames
	for f := range names {
		name := func(of string) string { return netfilter.SetName(netfilter.Family(f), of) }
		n := familyNames{
			clusterIP: name(netfilter.SetClusterIP), externalIP: name(netfilter.SetExternalIP),
			externalIPLocal: name(netfilter.SetExternalIPLocal), loopBack: name(netfilter.SetLoopBack),
			ips: name(netfilter.SetIPVSIPs), chains: name(netfilter.SetChains),
			nodePorts: map[netfilter.Proto][]string{
				netfilter.TCP: {name("KUBE-NODE-PORT-TCP"), name("KUBE-NODE-PORT-LOCAL-TCP")},
				netfilter.UDP: {name("KUBE-NODE-PORT-UDP"), name("KUBE-NODE-PORT-LOCAL-UDP")},
			},
		}
		for _, set := range netfilter.SetsOfKubeProxy() {
			n.kubeProxy = append(n.kubeProxy, name(set))
		}
		names[f] = n
	}
	return names
}

func (n *setNames) of(k ServerKey) *familyNames { return &n[k.family()] }

func (n *familyNames) server(set string) string {
	switch set {
	case netfilter.SetClusterIP:
		return n.clusterIP
	case netfilter.SetExternalIP:
		return n.externalIP
	default:
		return n.externalIPLocal
	}
}
