package ipvs

import "net/netip"

// OpKind is what an Op does, in the order in which a plan does it.
type OpKind uint8

// The kinds of Op, with the fields of Op that they need.
const (
	AddEntry          OpKind = iota // Entry; its set exists
	AddServer                       // Destination.Server, Server
	UpdateServer                    // Destination.Server, Server
	AddDestination                  // Destination, Weight
	UpdateDestination               // Destination, Weight; forwarding becomes masquerading
	AddAddress                      // Addr; the link exists
	DeleteDestination               // Destination
	DeleteServer                    // Destination.Server
	DeleteAddress                   // Addr
	DeleteEntry                     // Entry
)

// Op is one message to the kernel.
type Op struct {
	Kind        OpKind
	Destination DestinationKey // its Server is the virtual server of the Ops on servers
	Weight      int
	Server      Server
	Addr        netip.Addr
	Entry       Entry
}
