package ipvs

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gridproxy/rules/netfilter"
)

// Part is one of the texts that make up a State.
type Part struct {
	Name  string // in flags and metrics
	write func(io.Writer, kernelState, netfilter.Family) error
}

const partServers = "ipvs"

// Parts returns all Parts, in the order in which they are printed and compared.
func Parts() []Part {
	return []Part{
		{partServers, writeServers},   // for ipvsadm-restore
		{"ipset", writeSets},          // for ipset restore
		{"addresses", writeAddresses}, // for ip -batch
	}
}

// Write writes one family's part of a State, with the commands that create the sets and the link.
func (p Part) Write(w io.Writer, s State, f netfilter.Family) error {
	return p.write(w, withEverySet(s), f)
}

// withEverySet returns the state of a kernel that holds s, every set that we make, and the link.
func withEverySet(s State) kernelState {
	o := kernelState{State: s, Sets: map[string]string{}, Link: true}
	for base, kind := range netfilter.SetTypes() {
		o.Sets[netfilter.SetName(netfilter.IPv4, base)] = kind
		o.Sets[netfilter.SetName(netfilter.IPv6, base)] = kind
	}
	return o
}

// writeServers writes one family's virtual servers as `ipvsadm --save --numeric` prints them
// and ipvsadm-restore(8) takes them, sorted, each followed by its real servers.
func writeServers(w io.Writer, s kernelState, f netfilter.Family) error {
	b := bufio.NewWriter(w)
	destinations := map[ServerKey][]netip.AddrPort{}
	for d := range s.Destinations {
		if d.Server.family() == f {
			destinations[d.Server] = append(destinations[d.Server], d.Addr)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.Servers), compareServers) {
		if key.family() != f {
			continue
		}
		server := protoFlag(key.Proto) + " " + key.Addr.String()
		fmt.Fprintf(b, "-A %s%s\n", server, serverFlags(s.Servers[key]))
		slices.SortFunc(destinations[key], netip.AddrPort.Compare)
		for _, d := range destinations[key] {
			weight := s.Destinations[DestinationKey{Server: key, Addr: d}].Weight
			fmt.Fprintf(b, "-a %s -r %s -m -w %d\n", server, d, weight)
		}
	}
	return b.Flush()
}

func protoFlag(p netfilter.Proto) string {
	switch p {
	case netfilter.UDP:
		return "-u"
	case netfilter.SCTP:
		return "--sctp-service"
	default:
		return "-t"
	}
}

func serverFlags(s Server) string {
	flags := " -s " + s.Scheduler
	if s.Affinity > 0 {
		flags += fmt.Sprintf(" -p %d", s.Affinity/time.Second)
	}
	if s.Scheduler == hashScheduler {
		flags += " -b mh-port"
	}
	return flags
}

// writeSets writes one family's sets as ipset restore takes them, sorted. It includes empty ones,
// because rules name them.
func writeSets(w io.Writer, s kernelState, f netfilter.Family) error {
	b := bufio.NewWriter(w)
	family := "inet"
	if f == netfilter.IPv6 {
		family = "inet6"
	}
	types := netfilter.SetTypes()
	entries := map[string][]Entry{}
	for e := range s.Entries {
		entries[e.Set] = append(entries[e.Set], e)
	}
	for _, base := range slices.Sorted(maps.Keys(types)) {
		name := netfilter.SetName(f, base)
		if _, there := s.Sets[name]; there {
			fmt.Fprintf(b, "create %s %s family %s maxelem %d\n", name, types[base], family, entriesMax)
		}
		slices.SortFunc(entries[name], compareEntries)
		for _, e := range entries[name] {
			fmt.Fprintf(b, "add %s %s\n", name, e)
		}
	}
	return b.Flush()
}

// writeAddresses writes our link and one family's addresses as ip -batch takes them, sorted.
func writeAddresses(w io.Writer, s kernelState, f netfilter.Family) error {
	var text strings.Builder
	if s.Link {
		fmt.Fprintf(&text, "link add %s type dummy\n", Link)
	}
	for _, a := range slices.SortedFunc(maps.Keys(s.Addresses), netip.Addr.Compare) {
		if familyOf(a) != f {
			continue
		}
		fmt.Fprintf(&text, "address add %s/%d dev %s", a, a.BitLen(), Link)
		if f == netfilter.IPv6 {
			text.WriteString(" nodad") // no duplicate address detection
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(w, text.String())
	return err
}
