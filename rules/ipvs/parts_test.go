package ipvs

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
)

func serverAt(addr string, p netfilter.Proto) ServerKey {
	return ServerKey{Addr: netip.MustParseAddrPort(addr), Proto: p}
}

// sampleParts has a server of every shape.
func sampleParts() State {
	s := filled(kernelState{}).State
	add := func(key ServerKey, server Server, weights map[string]int) {
		s.Servers[key] = server
		for addr, w := range weights {
			s.Destinations[DestinationKey{Server: key, Addr: netip.MustParseAddrPort(addr)}] = Destination{Weight: w}
		}
	}
	add(serverAt("10.96.0.10:80", netfilter.TCP), Server{Scheduler: "rr", Affinity: 3 * time.Hour},
		map[string]int{"10.180.0.1:80": 1, "10.180.0.2:8080": 0, "10.180.0.10:80": 1})
	add(serverAt("10.96.0.10:80", netfilter.UDP), Server{Scheduler: "mh"}, map[string]int{"10.180.0.1:53": 1})
	add(serverAt("10.96.0.9:80", netfilter.SCTP), Server{Scheduler: "wlc"}, nil)
	add(serverAt("[fd00:96::10]:443", netfilter.TCP), Server{Scheduler: "sh", Affinity: time.Minute},
		map[string]int{"[fd00:180::1]:443": 1, "[fd00:180::2]:443": 1})
	for _, a := range []string{"10.96.0.10", "10.96.0.9", "fd00:96::10"} {
		s.Addresses[netip.MustParseAddr(a)] = struct{}{}
	}
	host := func(a string) netip.Prefix {
		return netip.PrefixFrom(netip.MustParseAddr(a), netip.MustParseAddr(a).BitLen())
	}
	entries := []Entry{
		{Set: "KUBE-CLUSTER-IP", Net: host("10.96.0.10"), Proto: netfilter.TCP, Port: 80},
		{Set: "KUBE-CLUSTER-IP", Net: host("10.96.0.10"), Proto: netfilter.UDP, Port: 80},
		{Set: "KUBE-EXTERNAL-IP", Net: host("10.96.0.9"), Proto: netfilter.SCTP, Port: 80},
		{Set: "KUBE-6-EXTERNAL-IP-LOCAL", Net: host("fd00:96::10"), Proto: netfilter.TCP, Port: 443},
		{Set: "KUBE-IPVS-IPS", Net: host("10.96.0.10")},
		{Set: "KUBE-6-IPVS-IPS", Net: host("fd00:96::10")},
		{Set: "KUBE-LOOP-BACK", Net: host("10.180.0.1"), Proto: netfilter.TCP, Port: 80, Peer: netip.MustParseAddr("10.180.0.1")},
		{Set: "KUBE-6-LOOP-BACK", Net: host("fd00:180::1"), Proto: netfilter.TCP, Port: 443, Peer: netip.MustParseAddr("fd00:180::1")},
		{Set: "KUBE-IPVS-CHAINS", Net: loopback4, Proto: netfilter.TCP, Port: 30080},
		{Set: "KUBE-IPVS-CHAINS", Net: host("192.168.0.2"), Proto: netfilter.UDP, Port: 30081},
		{Set: "KUBE-6-IPVS-CHAINS", Net: host("fd00:168::2"), Proto: netfilter.SCTP, Port: 30082},
	}
	for _, e := range entries {
		s.Entries[e] = struct{}{}
	}
	return s
}

// partText is the text of one Part.
func partText(t testing.TB, name string, s State, f netfilter.Family) string {
	t.Helper()
	all := Parts()
	at := slices.IndexFunc(all, func(p Part) bool { return p.Name == name })
	var b strings.Builder
	must(t, all[at].Write(&b, s, f))
	return b.String()
}

func TestParts(t *testing.T) {
	s := sampleParts()
	for _, c := range []struct {
		name string
		f    netfilter.Family
		want string
	}{
		{"ipvs", netfilter.IPv4, `-A --sctp-service 10.96.0.9:80 -s wlc
-A -t 10.96.0.10:80 -s rr -p 10800
-a -t 10.96.0.10:80 -r 10.180.0.1:80 -m -w 1
-a -t 10.96.0.10:80 -r 10.180.0.2:8080 -m -w 0
-a -t 10.96.0.10:80 -r 10.180.0.10:80 -m -w 1
-A -u 10.96.0.10:80 -s mh -b mh-port
-a -u 10.96.0.10:80 -r 10.180.0.1:53 -m -w 1
`},
		{"ipvs", netfilter.IPv6, `-A -t [fd00:96::10]:443 -s sh -p 60
-a -t [fd00:96::10]:443 -r [fd00:180::1]:443 -m -w 1
-a -t [fd00:96::10]:443 -r [fd00:180::2]:443 -m -w 1
`},
		{"ipset", netfilter.IPv4, `create KUBE-CLUSTER-IP hash:ip,port family inet maxelem 65536
add KUBE-CLUSTER-IP 10.96.0.10,tcp:80
add KUBE-CLUSTER-IP 10.96.0.10,udp:80
create KUBE-EXTERNAL-IP hash:ip,port family inet maxelem 65536
add KUBE-EXTERNAL-IP 10.96.0.9,sctp:80
create KUBE-EXTERNAL-IP-LOCAL hash:ip,port family inet maxelem 65536
create KUBE-IPVS-CHAINS hash:net,port family inet maxelem 65536
add KUBE-IPVS-CHAINS 127.0.0.0/8,tcp:30080
add KUBE-IPVS-CHAINS 192.168.0.2,udp:30081
create KUBE-IPVS-IPS hash:ip family inet maxelem 65536
add KUBE-IPVS-IPS 10.96.0.10
create KUBE-LOOP-BACK hash:ip,port,ip family inet maxelem 65536
add KUBE-LOOP-BACK 10.180.0.1,tcp:80,10.180.0.1
`},
		{"ipset", netfilter.IPv6, `create KUBE-6-CLUSTER-IP hash:ip,port family inet6 maxelem 65536
create KUBE-6-EXTERNAL-IP hash:ip,port family inet6 maxelem 65536
create KUBE-6-EXTERNAL-IP-LOCAL hash:ip,port family inet6 maxelem 65536
add KUBE-6-EXTERNAL-IP-LOCAL fd00:96::10,tcp:443
create KUBE-6-IPVS-CHAINS hash:net,port family inet6 maxelem 65536
add KUBE-6-IPVS-CHAINS fd00:168::2,sctp:30082
create KUBE-6-IPVS-IPS hash:ip family inet6 maxelem 65536
add KUBE-6-IPVS-IPS fd00:96::10
create KUBE-6-LOOP-BACK hash:ip,port,ip family inet6 maxelem 65536
add KUBE-6-LOOP-BACK fd00:180::1,tcp:443,fd00:180::1
`},
		{"addresses", netfilter.IPv4, `link add kube-ipvs0 type dummy
address add 10.96.0.9/32 dev kube-ipvs0
address add 10.96.0.10/32 dev kube-ipvs0
`},
		{"addresses", netfilter.IPv6, `link add kube-ipvs0 type dummy
address add fd00:96::10/128 dev kube-ipvs0 nodad
`},
	} {
		if diff := cmp.Diff(c.want, partText(t, c.name, s, c.f)); diff != "" {
			t.Errorf("%s of family %d (-want +got):\n%s", c.name, c.f, diff)
		}
	}
}

// The real tools take the parts, and print the same when they save.
func TestPartsAreWhatTheToolsTake(t *testing.T) {
	enter(t)
	s := sampleParts()
	var servers, sets []string
	for _, f := range bothFamilies() {
		text := partText(t, "ipvs", s, f)
		run(t, text, "ipvsadm", "-R")
		servers = append(servers, lines(text)...)
		text = partText(t, "ipset", s, f)
		run(t, text, "ipset", "restore")
		sets = append(sets, lines(text)...)
		addresses := partText(t, "addresses", s, f)
		if f == netfilter.IPv6 { // the link is there since the first family
			_, addresses, _ = strings.Cut(addresses, "\n")
		}
		run(t, addresses, "ip", "-batch", "-")
	}
	sameLines(t, "ipvsadm -S -n", servers, lines(run(t, "", "ipvsadm", "-S", "-n")))
	sameLines(t, "ipset save", additions(sets), additions(lines(run(t, "", "ipset", "save"))))

	k := open(t)
	observed, err := k.observe(t.Context(), nil)
	must(t, err)
	if diff := cmp.Diff(s, observed.State, equateAddrs); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// additions are the lines that add an entry: the others tell sizes, too.
func additions(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(l string) bool { return !strings.HasPrefix(l, "add ") })
}

func sameLines(t *testing.T, what string, want, got []string) {
	t.Helper()
	trim := func(list []string) []string {
		out := make([]string, len(list))
		for i, l := range list {
			out[i] = strings.TrimSpace(l)
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(trim(want), trim(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
