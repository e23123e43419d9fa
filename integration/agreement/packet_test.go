package agreement

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"

	"gridproxy/rules/netfilter"
)

// packet is the first packet of a connection on the wire, from its IP header on. It is one
// that the kernel takes for such: a SYN, an INIT, with the checksums that it checks.
func packet(src, dst netip.AddrPort, proto netfilter.Proto) []byte {
	var payload []byte
	switch proto {
	case netfilter.TCP:
		payload = make([]byte, 20)
		payload[12] = 5 << 4                               // length in words
		payload[13] = 0x02                                 // SYN
		binary.BigEndian.PutUint16(payload[14:16], 0xffff) // window
	case netfilter.UDP:
		payload = make([]byte, 8)
		binary.BigEndian.PutUint16(payload[4:6], 8)
	case netfilter.SCTP:
		payload = make([]byte, 32)
		payload[12] = 1                                 // INIT
		binary.BigEndian.PutUint16(payload[14:16], 20)  // length of the chunk
		binary.BigEndian.PutUint32(payload[16:20], 1)   // initiate tag
		binary.BigEndian.PutUint32(payload[20:24], 1e5) // window
		binary.BigEndian.PutUint16(payload[24:26], 1)   // streams out
		binary.BigEndian.PutUint16(payload[26:28], 1)   // streams in
	}
	binary.BigEndian.PutUint16(payload[0:2], src.Port())
	binary.BigEndian.PutUint16(payload[2:4], dst.Port())
	switch proto {
	case netfilter.TCP:
		binary.BigEndian.PutUint16(payload[16:18], checksum(pseudoHeader(src.Addr(), dst.Addr(), uint8(proto), len(payload)), payload))
	case netfilter.UDP:
		binary.BigEndian.PutUint16(payload[6:8], checksum(pseudoHeader(src.Addr(), dst.Addr(), uint8(proto), len(payload)), payload))
	case netfilter.SCTP:
		binary.LittleEndian.PutUint32(payload[8:12], crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)))
	}
	return append(ipHeader(src.Addr(), dst.Addr(), uint8(proto), len(payload)), payload...)
}

// The protocol numbers of ICMP and the types of echo requests.
const (
	icmp4, icmp6         = 1, 58
	icmp4Echo, icmp6Echo = 8, 128
)

func echoRequest(src, dst netip.Addr, id uint16) []byte {
	payload := make([]byte, 8)
	proto := uint8(icmp4)
	payload[0] = icmp4Echo
	var pseudo []byte
	if src.Is6() {
		proto, payload[0] = icmp6, icmp6Echo
		pseudo = pseudoHeader(src, dst, proto, len(payload))
	}
	binary.BigEndian.PutUint16(payload[4:6], id)
	binary.BigEndian.PutUint16(payload[2:4], checksum(pseudo, payload))
	return append(ipHeader(src, dst, proto, len(payload)), payload...)
}

func ipHeader(src, dst netip.Addr, proto uint8, length int) []byte {
	if src.Is6() {
		h := make([]byte, 8, 40+length)
		h[0] = 6 << 4
		binary.BigEndian.PutUint16(h[4:6], uint16(length))
		h[6], h[7] = proto, 64
		return append(append(h, src.AsSlice()...), dst.AsSlice()...)
	}
	h := make([]byte, 12, 20+length)
	h[0] = 4<<4 | 5
	binary.BigEndian.PutUint16(h[2:4], uint16(20+length))
	h[8], h[9] = 64, proto
	h = append(append(h, src.AsSlice()...), dst.AsSlice()...)
	binary.BigEndian.PutUint16(h[10:12], checksum(nil, h))
	return h
}

func pseudoHeader(src, dst netip.Addr, proto uint8, length int) []byte {
	h := append(src.AsSlice(), dst.AsSlice()...)
	h = binary.BigEndian.AppendUint32(h, uint32(length))
	return append(h, 0, 0, 0, proto)
}

// checksum is the Internet checksum (RFC 1071) of two texts of even length.
func checksum(texts ...[]byte) uint16 {
	sum := uint32(0)
	for _, text := range texts {
		for i := 0; i+1 < len(text); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(text[i:]))
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// unreachable reads a packet from its IP header on: whether it is an ICMP message that says
// that a port is unreachable, and what it is about, from the IP header on.
func unreachable(p []byte) (about []byte, ok bool) {
	switch {
	case len(p) >= 28 && p[0]>>4 == 4 && p[9] == icmp4:
		if p = p[4*int(p[0]&15):]; len(p) < 28 || p[0] != 3 || p[1] != 3 {
			return nil, false
		}
		return p[8:], true
	case len(p) >= 88 && p[0]>>4 == 6 && p[6] == icmp6:
		return unreachable6(p[40:])
	default:
		return nil, false
	}
}

// unreachable6 is unreachable for an ICMPv6 message without an IP header.
func unreachable6(p []byte) (about []byte, ok bool) {
	if len(p) < 48 || p[0] != 1 || p[1] != 4 {
		return nil, false
	}
	return p[8:], true
}

// sourcePort is the source port of a packet, or the identity of an echo request, and its
// protocol; ok is false where there is neither.
func sourcePort(p []byte) (port uint16, proto uint8, ok bool) {
	at := 40
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		at, proto = 4*int(p[0]&15), p[9]
	case len(p) >= 40 && p[0]>>4 == 6:
		proto = p[6]
	default:
		return 0, 0, false
	}
	if proto == icmp4 || proto == icmp6 {
		at += 4
	}
	if len(p) < at+2 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(p[at:]), proto, true
}
