package ipvs

import (
	"net/netip"
	"slices"
)

// ownership decides which virtual servers are ours, by what else the kernel holds.
type ownership struct {
	kernelState
	exclude []netip.Prefix
	listing map[netip.Addr]struct{} // the addresses that any server in a set has; nil until needed
}

// has reports whether something in the kernel says that a server is ours: a set of ours or of
// kube-proxy's lists it, or its address is on our link and no set lists any server there, as after
// a flush. Where sets list other servers of the address, one that they do not list belongs to
// another program. On an excluded address only our own sets count.
func (o *ownership) has(key ServerKey) bool {
	switch {
	case o.listed(key):
		return true
	case inside(o.exclude, key.Addr.Addr()):
		return false
	case o.listedByKubeProxy(key):
		return true
	default:
		return has(o.Addresses, key.Addr.Addr()) && !has(o.listedAddresses(), key.Addr.Addr())
	}
}

// listed reports whether one of our own sets has a server.
func (o *ownership) listed(key ServerKey) bool {
	sets := key.sets().ofServers()
	return o.listedIn(sets[:], key)
}

func (o *ownership) listedIn(sets []string, key ServerKey) bool {
	return slices.ContainsFunc(sets, func(set string) bool { return has(o.Entries, entryListing(set, key)) })
}

// listedByKubeProxy reports whether a set that only kube-proxy has lists a server: by its address,
// or by its port alone, on which kube-proxy has servers on every address of the node.
func (o *ownership) listedByKubeProxy(key ServerKey) bool {
	n := key.sets()
	return o.listedIn(n.kubeProxy, key) || slices.ContainsFunc(n.nodePorts[key.Proto], func(set string) bool {
		return has(o.Entries, Entry{Set: set, Port: key.Addr.Port()})
	})
}

func (o *ownership) listedAddresses() map[netip.Addr]struct{} {
	if o.listing != nil {
		return o.listing
	}
	o.listing = map[netip.Addr]struct{}{}
	for e := range o.Entries {
		if !e.Net.IsValid() || e.Port == 0 {
			continue
		}
		n := &setNames[familyOf(e.Net.Addr())]
		sets := n.ofServers()
		if slices.Contains(sets[:], e.Set) || slices.Contains(n.kubeProxy, e.Set) {
			o.listing[e.Net.Addr()] = struct{}{}
		}
	}
	return o.listing
}
