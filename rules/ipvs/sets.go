package ipvs

import (
	"net/netip"

	"gridproxy/rules/netfilter"
)

type knownSet struct {
	name   string
	kind   string // "" = only kube-proxy has it
	family netfilter.Family
}

// knownSets returns our sets and kube-proxy's, of both families.
func knownSets() []knownSet {
	var all []knownSet
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		for name, kind := range netfilter.SetTypes() {
			all = append(all, knownSet{netfilter.SetName(f, name), kind, f})
		}
		for _, name := range netfilter.SetsOfKubeProxy() {
			all = append(all, knownSet{netfilter.SetName(f, name), "", f})
		}
	}
	return all
}

// setUse is what a set is for, as far as a plan must know.
type setUse uint8

const (
	otherUse   setUse = iota
	serverUse         // its entries make virtual servers ours
	addressUse        // it repeats the addresses of Link
)

// familySets are the names of the sets of one family.
type familySets struct {
	clusterIP, externalIP, externalIPLocal, loopBack, ips, chains string

	kubeProxy []string                     // sets that only kube-proxy has
	nodePorts map[netfilter.Proto][]string // those of them that list port numbers
}

// setNames are the names of all sets, by family.
var setNames = newSetNames()

func newSetNames() (names [2]familySets) {
	for f := range names {
		name := func(of string) string { return netfilter.SetName(netfilter.Family(f), of) }
		n := familySets{
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

// keptSets are the sets that we keep, and what each is for.
var keptSets = newKeptSets()

func newKeptSets() map[string]setUse {
	uses := map[string]setUse{}
	for _, f := range setNames {
		for _, set := range f.ofServers() {
			uses[set] = serverUse
		}
		uses[f.ips] = addressUse
		uses[f.loopBack], uses[f.chains] = otherUse, otherUse
	}
	return uses
}

func (k ServerKey) sets() *familySets { return &setNames[k.family()] }

// ofServers returns the names of our sets whose entries make virtual servers ours.
func (n *familySets) ofServers() [3]string {
	return [3]string{n.clusterIP, n.externalIP, n.externalIPLocal}
}

// entryListing returns the entry of a set that lists a server, which makes it ours.
func entryListing(set string, key ServerKey) Entry {
	a := key.Addr.Addr()
	return Entry{Set: set, Net: netip.PrefixFrom(a, a.BitLen()), Proto: key.Proto, Port: key.Addr.Port()}
}

func listedServer(e Entry) ServerKey {
	return ServerKey{Addr: netip.AddrPortFrom(e.Net.Addr(), e.Port), Proto: e.Proto}
}
