package conntrack

import (
	"net/netip"
	"time"
)

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
	Expires            time.Duration // from now, without another packet; whole seconds
}

// How long the kernel keeps a UDP flow after a packet: one that is short, and one with packets both
// ways for more than two seconds. These are its defaults, nf_conntrack_udp_timeout and
// nf_conntrack_udp_timeout_stream.
const (
	keptShort  = 30 * time.Second
	keptStream = 120 * time.Second
)

// UsedWithin reports whether a packet of a UDP flow may have passed within the last d, which is
// shorter than the kernel keeps it. Where the kernel's times are others than its defaults, it may
// be wrong.
func (f Flow) UsedWithin(d time.Duration) bool {
	used := func(kept time.Duration) bool { return f.Expires <= kept && f.Expires >= kept-d-time.Second }
	return used(keptShort) || used(keptStream)
}

// Translated reports whether the packets were sent elsewhere than they were addressed to.
func (f Flow) Translated() bool { return f.ReplySrc != f.Dst }
