package ipvs

import (
	"net/netip"

	"gridproxy/rules/netfilter"
)

// operationKind is what an operation does, in the order in which a plan does it.
type operationKind uint8

// The kinds of operation, with the fields that they need.
const (
	addEntry          operationKind = iota // Entry; its set exists
	addServer                              // Destination.Server, Server
	updateServer                           // Destination.Server, Server
	addDestination                         // Destination, Weight
	updateDestination                      // Destination, Weight; forwarding becomes masquerading
	addAddress                             // Addr; the link exists
	deleteDestination                      // Destination
	deleteServer                           // Destination.Server
	deleteAddress                          // Addr
	deleteEntry                            // Entry
)

// operation is one message to the kernel.
type operation struct {
	Kind        operationKind
	Destination DestinationKey // its Server is the virtual server of operations on servers
	Weight      int
	Server      Server
	Addr        netip.Addr
	Entry       Entry
}

func (op operation) family() netfilter.Family {
	switch op.Kind {
	case addEntry, deleteEntry:
		if op.Entry.Net.IsValid() {
			return familyOf(op.Entry.Net.Addr())
		}
		for _, s := range knownSets() { // a bitmap:port of kube-proxy's
			if s.name == op.Entry.Set {
				return s.family
			}
		}
		return netfilter.IPv4
	case addAddress, deleteAddress:
		return familyOf(op.Addr)
	default:
		return op.Destination.Server.family()
	}
}
