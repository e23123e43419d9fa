package conntrack

import "net/netip"

// Protocol is an IP protocol number.
type Protocol uint8

// The protocols of Services.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

// Flow is what a connection tracking entry says about the addresses of its packets. The
// reply's source is the endpoint that the kernel chose, or Dst where it chose none.
type Flow struct {
	Proto              Protocol
	Src, Dst           netip.AddrPort // of the original direction
	ReplySrc, ReplyDst netip.AddrPort
}

// Translated reports whether the packets were sent elsewhere than they were addressed to.
func (f Flow) Translated() bool { return f.ReplySrc != f.Dst }
