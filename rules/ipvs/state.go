package ipvs

import (
	"net/netip"
	"time"

	"gridproxy/rules/iptables"
)

// Link is the dummy link that carries the addresses of our virtual servers. It is left down:
// its addresses are local all the same.
const Link = "kube-ipvs0"

// State is what the kernel is to hold, or holds, beside iptables: both families together.
type State struct {
	Servers      map[ServerKey]Server
	Destinations map[DestinationKey]Destination
	Addresses    map[netip.Addr]struct{} // on Link
	Entries      map[Entry]struct{}      // of our sets
}

// ServerKey is which virtual server.
type ServerKey struct {
	Addr  netip.AddrPort
	Proto iptables.Proto
}

// Server is how a virtual server chooses among its real servers.
type Server struct {
	Scheduler string        // as ipvsadm(8) names it
	Affinity  time.Duration // whole seconds for which a client keeps its real server; 0 = none
}

// DestinationKey is which real server of which virtual server. Forwarding is always
// masquerading (NAT).
type DestinationKey struct {
	Server ServerKey
	Addr   netip.AddrPort
}

// Destination is a real server.
type Destination struct {
	Weight int // 1; 0 = it drains: no new connections
}

// Entry is an entry of one of our sets. Which fields it has depends on the set's type; the
// others are zero.
type Entry struct {
	Set   string       // name in the kernel, of a family: see iptables.SetName
	Net   netip.Prefix // of full length but in sets of networks
	Proto iptables.Proto
	Port  uint16
	Peer  netip.Addr // hash:ip,port,ip only
}

// Observed is what the kernel was found to hold.
type Observed struct {
	State                              // Servers and Destinations are everybody's; Entries those of sets that are ours
	Connections map[DestinationKey]int // of TCP, active and inactive; destinations without any are not in it
	Sets        map[string]string      // sets that are ours, by name: their type
	Link        bool                   // Link exists
}
