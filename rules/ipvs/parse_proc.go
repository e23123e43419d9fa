package ipvs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"time"

	"gridproxy/rules/netfilter"
)

// parseProc reads the servers and real servers of /proc/net/ip_vs. It leaves out servers of
// firewall marks. A line that it does not understand is an error that quotes it. tick is the unit
// in which the kernel counts the time of affinity: clock_getres(2) has it for
// CLOCK_MONOTONIC_COARSE.
func parseProc(r io.Reader, tick time.Duration) (kernelState, error) {
	s := filled(kernelState{})
	p := procParser{tick: tick}
	for p.scan(r) {
		if p.ofServer {
			s.Servers[p.key] = p.server
		} else {
			s.Destinations[DestinationKey{Server: p.key, Addr: p.peer}] = p.destination
		}
	}
	return s, p.err
}

// parseProcConnections reads from /proc/net/ip_vs how many connections, active and inactive, some
// real servers have. One that is not listed is not in the result: the kernel prints the list page
// by page, and may leave out one that exists.
func parseProcConnections[V any](r io.Reader, of map[DestinationKey]V) (map[DestinationKey]int, error) {
	counts := make(map[DestinationKey]int, len(of))
	var p procParser
	for p.scan(r) {
		d := DestinationKey{Server: p.key, Addr: p.peer}
		if _, asked := of[d]; asked && !p.ofServer {
			counts[d] = p.connections
		}
	}
	return counts, p.err
}

// procParser reads line by line, and keeps no line.
type procParser struct {
	tick  time.Duration
	lines *bufio.Scanner
	names map[string]string // of schedulers, so that equal ones share their memory
	err   error
	skip  bool // the server is one of a firewall mark

	// The line that was read last: a server, or a real server of the server before it.
	ofServer    bool
	key         ServerKey
	server      Server
	peer        netip.AddrPort
	destination Destination
	connections int
}

// procHeaders is how many lines come before the first server.
const procHeaders = 3

var (
	errNoServerList = errors.New("it does not begin like a list of virtual servers")
	errProcLine     = errors.New("the line is neither a virtual server nor a real server of the one before it")
)

// scan reads up to the next server or real server, into the fields of p. It returns false at
// the end, or after an error, which is in err.
func (p *procParser) scan(r io.Reader) bool {
	if p.lines == nil && !p.begin(r) {
		return false
	}
	for p.lines.Scan() {
		line := p.lines.Bytes()
		found, err := p.line(line)
		if err != nil {
			p.err = fmt.Errorf("reading %q: %w", bytes.TrimSpace(line), err)
			return false
		}
		if found {
			return true
		}
	}
	p.err = p.lines.Err()
	return false
}

func (p *procParser) begin(r io.Reader) bool {
	p.lines = bufio.NewScanner(r)
	p.names = map[string]string{}
	p.skip = true // real servers before the first server are left out
	for i := range procHeaders {
		if !p.lines.Scan() || i == 0 && !bytes.HasPrefix(p.lines.Bytes(), []byte("IP Virtual Server")) {
			p.err = errors.Join(errNoServerList, p.lines.Err())
			return false
		}
	}
	return true
}

func (p *procParser) line(line []byte) (found bool, err error) {
	kind, rest := word(line)
	switch string(kind) {
	case "":
		return false, nil
	case "->":
		if p.skip {
			return false, nil
		}
		p.ofServer = false
		return true, p.destinationLine(rest)
	case "FWM":
		p.skip = true
		return false, nil
	case "TCP":
		p.key.Proto = netfilter.TCP
	case "UDP":
		p.key.Proto = netfilter.UDP
	case "SCTP":
		p.key.Proto = netfilter.SCTP
	default:
		return false, errProcLine
	}
	p.ofServer, p.skip = true, false
	return true, p.serverLine(rest)
}

// serverLine reads `0A600001:0050 rr [ops] [persistent 2700000 FFFFFFFF]`: the time of
// affinity in ticks, and a mask.
func (p *procParser) serverLine(line []byte) error {
	addr, line := word(line)
	name, line := word(line)
	var ok bool
	if p.key.Addr, ok = procAddr(addr); !ok || len(name) == 0 {
		return errProcLine
	}
	p.server = Server{Scheduler: p.intern(name)}
	for {
		flag, rest := word(line)
		switch string(flag) {
		case "":
			return nil
		case "persistent":
			ticks, after := word(rest)
			mask, after := word(after)
			n, err := strconv.ParseInt(string(ticks), 10, 32)
			if err != nil || n < 0 || len(mask) == 0 {
				return errProcLine
			}
			p.server.Affinity = (time.Duration(n) * p.tick).Round(time.Second)
			if string(mask) != wholeMask(p.key) {
				p.server.Other += "mask " + string(mask) + " "
			}
			rest = after
		default:
			p.server.Other += string(flag) + " "
		}
		line = rest
	}
}

// wholeMask returns how the kernel prints the mask that tells all clients apart: the bits for
// IPv4, the length with its bytes in reverse order for IPv6.
func wholeMask(k ServerKey) string {
	if k.Addr.Addr().Is6() {
		return "80000000"
	}
	return "FFFFFFFF"
}

// destinationLine reads `0AB40001:0050 Masq 1 0 0`: forwarding, weight, active and inactive
// connections. Local stands for masquerading to an address of this machine.
func (p *procParser) destinationLine(line []byte) error {
	addr, line := word(line)
	forward, line := word(line)
	var ok bool
	if p.peer, ok = procAddr(addr); !ok {
		return errProcLine
	}
	var n [3]int
	for i := range n {
		var text []byte
		text, line = word(line)
		v, err := strconv.Atoi(string(text))
		if err != nil {
			return errProcLine
		}
		n[i] = v
	}
	p.destination = Destination{Weight: n[0]}
	switch string(forward) {
	case "Masq", "Local":
	default:
		p.destination.Other = string(forward)
	}
	p.connections = n[1] + n[2]
	return nil
}

func (p *procParser) intern(name []byte) string {
	known, found := p.names[string(name)]
	if !found {
		known = string(name)
		p.names[known] = known
	}
	return known
}

func word(line []byte) (first, rest []byte) {
	line = bytes.TrimLeft(line, " ")
	if i := bytes.IndexByte(line, ' '); i >= 0 {
		return line[:i], line[i:]
	}
	return line, nil
}

// procAddr reads `0A600001:0050` or `[fd00:0096:0000:0000:0000:0000:0000:0010]:0050`. It
// returns false for any other text.
func procAddr(text []byte) (netip.AddrPort, bool) {
	colon := bytes.LastIndexByte(text, ':')
	var port [2]byte
	if colon < 0 || !hexBytes(port[:], text[colon+1:]) {
		return netip.AddrPort{}, false
	}
	host, number := text[:colon], binary.BigEndian.Uint16(port[:])
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		var a [16]byte
		if !hexGroups(&a, host[1:len(host)-1]) {
			return netip.AddrPort{}, false
		}
		return netip.AddrPortFrom(netip.AddrFrom16(a), number), true
	}
	var a [4]byte
	if !hexBytes(a[:], host) {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(netip.AddrFrom4(a), number), true
}

// hexGroups fills to from groups of four hex digits with colons, and reports whether it could.
func hexGroups(to *[16]byte, text []byte) bool {
	if len(text) != len("fd00:0096:0000:0000:0000:0000:0000:0010") {
		return false
	}
	for group := range 8 {
		if at := 5 * group; at > 0 && text[at-1] != ':' || !hexBytes(to[2*group:2*group+2], text[at:at+4]) {
			return false
		}
	}
	return true
}

// hexBytes fills to from text, two hex digits a byte, and reports whether it could.
func hexBytes(to, text []byte) bool {
	if len(text) != 2*len(to) {
		return false
	}
	_, err := hex.Decode(to, text)
	return err == nil
}
