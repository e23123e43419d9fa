package ipvs

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// Link is the dummy link that carries the addresses of our virtual servers. It stays down: its
// addresses are local nevertheless.
const Link = "kube-ipvs0"

// State is what the kernel should hold, or holds, beside iptables: both families together.
type State struct {
	Servers      map[ServerKey]Server
	Destinations map[DestinationKey]Destination
	Addresses    map[netip.Addr]struct{} // on Link
	Entries      map[Entry]struct{}      // of our sets
}

// ServerKey identifies a virtual server.
type ServerKey struct {
	Addr  netip.AddrPort
	Proto netfilter.Proto
}

func (k ServerKey) family() netfilter.Family { return familyOf(k.Addr.Addr()) }

func familyOf(a netip.Addr) netfilter.Family { return netfilter.Family(rules.FamilyOf(a)) }

// Server is how a virtual server chooses among its real servers.
type Server struct {
	Scheduler string        // as ipvsadm(8) names it
	Affinity  time.Duration // whole seconds for which a client keeps its real server

	// Other is what a server of ours never has, such as one-packet scheduling or another mask of
	// affinity, as /proc/net/ip_vs prints it. It is never desired.
	Other string
}

// DestinationKey identifies a real server of a virtual server. Forwarding is always masquerading
// (NAT).
type DestinationKey struct {
	Server ServerKey
	Addr   netip.AddrPort
}

// Destination is a real server.
type Destination struct {
	Weight int    // 1; 0 = it drains: no new connections
	Other  string // how packets are forwarded instead of by masquerading; never desired
}

// Entry is an entry of one of our sets. The type of the set says which fields it has; the others
// are zero. An entry of a bitmap:port, a type of kube-proxy's, has only a Port.
type Entry struct {
	Set   string       // name in the kernel, of a family: see netfilter.SetName
	Net   netip.Prefix // of full length but in sets of networks
	Proto netfilter.Proto
	Port  uint16
	Peer  netip.Addr // hash:ip,port,ip only
}

// kernelState is what was read from the kernel, and what was done since.
type kernelState struct {
	State                   // Servers and Destinations of all programs; Entries of sets that are ours
	Sets  map[string]string // the types of sets that are ours, by name
	Link  bool              // Link exists
}

// String returns address, port and protocol, such as "10.96.0.10:80/tcp".
func (k ServerKey) String() string { return k.Addr.String() + "/" + k.Proto.String() }

// String returns the entry as ipset(8) prints it, without its set: "10.96.0.10,tcp:80",
// "10.180.0.1,tcp:80,10.180.0.1", "127.0.0.0/8,tcp:30080" or "10.96.0.10".
func (e Entry) String() string {
	var b strings.Builder
	b.WriteString(e.Net.Addr().String())
	if !e.Net.IsSingleIP() {
		fmt.Fprintf(&b, "/%d", e.Net.Bits())
	}
	if e.Proto != 0 {
		fmt.Fprintf(&b, ",%s:%d", e.Proto, e.Port)
	}
	if e.Peer.IsValid() {
		b.WriteString("," + e.Peer.String())
	}
	return b.String()
}

func compareServers(a, b ServerKey) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Proto, b.Proto))
}

func compareDestinations(a, b DestinationKey) int {
	return cmp.Or(compareServers(a.Server, b.Server), a.Addr.Compare(b.Addr))
}

func compareEntries(a, b Entry) int {
	return cmp.Or(
		strings.Compare(a.Set, b.Set), a.Net.Addr().Compare(b.Net.Addr()), cmp.Compare(a.Net.Bits(), b.Net.Bits()),
		cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port), a.Peer.Compare(b.Peer),
	)
}
