package conntrack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Attribute numbers of linux/netfilter/nfnetlink_conntrack.h that the library lacks.
const (
	ctnetlink          = 1 // NFNL_SUBSYS_CTNETLINK
	ctaFilter          = 25
	ctaFilterOrigFlags = 1
	filterFlagProtoNum = 1 << 3
)

// dump visits the flows of one table until visit returns false. The message that describes a
// flow is valid until the next one. The error is ErrDumpInterrupted if a change interrupted it.
func dump(t Table, visit func(f Flow, message []byte) bool) error {
	return list(t, func(message []byte) bool {
		f, ok := parse(message)
		return !ok || f.Proto != t.Proto || visit(f, message)
	})
}

// list asks the kernel for the messages of one table until visit returns false. Kernels
// from 5.8 on send flows of this protocol only, older ones all of the family.
func list(t Table, visit func(raw []byte) bool) error {
	req := request(t, nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP)
	proto := nl.NewRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_PROTO, nil)
	proto.AddRtAttr(nl.CTA_PROTO_NUM, []byte{byte(t.Proto)})
	tuple := nl.NewRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_ORIG, nil)
	tuple.AddChild(proto)
	filter := nl.NewRtAttr(unix.NLA_F_NESTED|ctaFilter, nil)
	filter.AddRtAttr(ctaFilterOrigFlags, binary.NativeEndian.AppendUint32(nil, filterFlagProtoNum))
	req.AddData(tuple)
	req.AddData(filter)
	if err := req.ExecuteIter(unix.NETLINK_NETFILTER, 0, visit); err != nil {
		return fmt.Errorf("listing the kernel's %s flows over netlink: %w", t, err)
	}
	return nil
}

// remove deletes exactly the entry that the message raw describes, not a later one with the same
// addresses: the message holds the kernel's id of the entry. It returns false if the entry is gone.
func remove(t Table, raw []byte) (bool, error) {
	req := request(t, nl.IPCTNL_MSG_CT_DELETE, unix.NLM_F_ACK)
	req.AddRawData(raw[nl.SizeofNfgenmsg:])
	switch _, err := req.Execute(unix.NETLINK_NETFILTER, 0); {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("deleting a %s flow over netlink: %w", t, err)
	}
	return true, nil
}

func request(t Table, operation, flags int) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(ctnetlink<<8|operation, flags)
	family := uint8(unix.AF_INET)
	if t.IPv6 {
		family = unix.AF_INET6
	}
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: nl.NFNETLINK_V0})
	return req
}

// String names the table in messages.
func (t Table) String() string {
	protocol := map[Protocol]string{TCP: "TCP", UDP: "UDP", SCTP: "SCTP"}[t.Proto]
	if t.IPv6 {
		return "IPv6 " + protocol
	}
	return "IPv4 " + protocol
}

// parse reads a message of the kernel; false where it holds no flow with ports.
func parse(raw []byte) (Flow, bool) {
	if len(raw) < nl.SizeofNfgenmsg {
		return Flow{}, false
	}
	var f Flow
	for kind, value := range attributes(raw[nl.SizeofNfgenmsg:]) {
		switch kind {
		case nl.CTA_TUPLE_ORIG:
			f.Src, f.Dst, f.Proto = parseTuple(value)
		case nl.CTA_TUPLE_REPLY:
			f.ReplySrc, f.ReplyDst, _ = parseTuple(value)
		case nl.CTA_TIMEOUT:
			if len(value) == 4 {
				f.Expires = time.Duration(binary.BigEndian.Uint32(value)) * time.Second
			}
		}
	}
	return f, f.Dst.IsValid() && f.ReplySrc.IsValid() && f.Dst.Port() != 0
}

func parseTuple(b []byte) (src, dst netip.AddrPort, proto Protocol) {
	var srcIP, dstIP netip.Addr
	var srcPort, dstPort uint16
	for kind, nested := range attributes(b) {
		for inner, value := range attributes(nested) {
			switch {
			case kind == nl.CTA_TUPLE_IP && (inner == nl.CTA_IP_V4_SRC || inner == nl.CTA_IP_V6_SRC):
				srcIP, _ = netip.AddrFromSlice(value)
			case kind == nl.CTA_TUPLE_IP && (inner == nl.CTA_IP_V4_DST || inner == nl.CTA_IP_V6_DST):
				dstIP, _ = netip.AddrFromSlice(value)
			case kind == nl.CTA_TUPLE_PROTO && inner == nl.CTA_PROTO_NUM && len(value) == 1:
				proto = Protocol(value[0])
			case kind == nl.CTA_TUPLE_PROTO && inner == nl.CTA_PROTO_SRC_PORT && len(value) == 2:
				srcPort = binary.BigEndian.Uint16(value)
			case kind == nl.CTA_TUPLE_PROTO && inner == nl.CTA_PROTO_DST_PORT && len(value) == 2:
				dstPort = binary.BigEndian.Uint16(value)
			}
		}
	}
	return netip.AddrPortFrom(srcIP, srcPort), netip.AddrPortFrom(dstIP, dstPort), proto
}

// attributes walks netlink attributes without allocating: a table may hold a million
// flows. It ends at the first one that does not fit.
func attributes(b []byte) iter.Seq2[uint16, []byte] {
	const head = unix.SizeofNlAttr
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= head {
			n := int(binary.NativeEndian.Uint16(b))
			if n < head || n > len(b) {
				return
			}
			kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
			if !yield(kind, b[head:n]) {
				return
			}
			b = b[min(len(b), (n+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1)):]
		}
	}
}
