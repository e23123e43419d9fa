package localdns

import (
	"net/netip"
	"testing"

	"gridproxy/rules/dnsredirect"
)

// TestStrangers: other processes that listen at the addresses of the DNS servers of this node.
func TestStrangers(t *testing.T) {
	at := netip.MustParseAddrPort("169.254.20.12:53")
	l := func(network string, pid int, program string) dnsredirect.Listener {
		return dnsredirect.Listener{Network: network, At: at, PID: pid, Program: program}
	}
	const tail = "; end it, or choose another --dns-address"
	const head = "another process listens where the DNS server of this node answers, and takes its queries: "
	for _, c := range []struct {
		name    string
		all     []dnsredirect.Listener
		clients []Client
		want    string
	}{
		{name: "no one listens"},
		{"twins", []dnsredirect.Listener{l("udp", 7, "grid-dns"), l("tcp", 7, "grid-dns"), l("udp", 8, "grid-dns")}, []Client{{PID: 7}, {PID: 8}}, ""},
		{"another program, of which two sockets are one line each", []dnsredirect.Listener{l("udp", 7, "grid-dns"), l("udp", 9, "dnsmasq"), l("tcp", 9, "dnsmasq"), l("udp", 9, "dnsmasq")}, []Client{{PID: 7}},
			head + "process 9 (dnsmasq) has 169.254.20.12:53 over tcp, process 9 (dnsmasq) has 169.254.20.12:53 over udp" + tail},
		{"without any server", []dnsredirect.Listener{l("udp", 9, "dnsmasq")}, nil, head + "process 9 (dnsmasq) has 169.254.20.12:53 over udp" + tail},
		{"servers in containers", []dnsredirect.Listener{l("udp", 0, ""), l("udp", 0, ""), l("tcp", 0, "")}, []Client{{}, {}}, ""},
		{"one more than servers", []dnsredirect.Listener{l("udp", 0, ""), l("udp", 0, ""), l("tcp", 0, "")}, []Client{{}},
			head + "a process that this one cannot see (ss -lnp shows it) has 169.254.20.12:53 over udp" + tail},
		{"a server that is seen, and a socket that is not", []dnsredirect.Listener{l("udp", 7, "grid-dns"), l("udp", 0, "")}, []Client{{PID: 7}},
			head + "a process that this one cannot see (ss -lnp shows it) has 169.254.20.12:53 over udp" + tail},
	} {
		if got := describeOthers(otherListeners(c.all, c.clients)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}
