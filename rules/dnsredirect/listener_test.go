package dnsredirect

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
)

// TestParseTable: rows as kernels print them.
func TestParseTable(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	addrs := []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")}
	for _, c := range []struct{ name, network, table, want string }{
		{"UDP", "udp", head +
			"  301: 0C14FEA9:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4242 2 ffff 0\n" +
			"  302: 0C14FEA9:0036 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 ffff 0\n" +
			"  303: 3500007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 2 2 ffff 0\n", "169.254.20.12:53 socket:[4242]"},
		{"IPv6", "udp", head +
			"  301: 727600FD0000646900000000120000AB:0035 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 f 0\n" +
			"  302: 727200FD00006469:0035 x\n", "error"},
		{"IPv6 of the server", "tcp", head +
			"   0: 726700FD000064690000000012000000:0035 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1 f 100\n",
			"[fd00:6772:6964::12]:53 socket:[77]"},
		{"connections after the listeners", "tcp", head +
			"   0: 0C14FEA9:0035 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 5 1 f 100 0 0 10 0\n" +
			"   1: 0C14FEA9:0035 0500000A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 6 1 f 20 4 30 10 -1\n", "169.254.20.12:53 socket:[5]"},
		{"nothing", "udp", head, ""},
		{"no address", "udp", head + " 1: 0C14:0035 0:0 07 0:0 0:0 0 0 0 5 1\n", "error"},
	} {
		rows, err := parseTable(strings.NewReader(c.table), c.network, addrs)
		var words []string
		for _, r := range rows {
			words = append(words, r.listener.At.String()+" "+r.link)
		}
		got := strings.Join(words, ", ")
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.name, got, err, c.want)
		}
	}
}

// TestReadListeners: sockets of this process, of both families and protocols, are found with it,
// whether it is looked at first or not.
func TestReadListeners(t *testing.T) {
	need.Namespace(t)
	var addrs []netip.Addr
	for _, m := range machine {
		addrs = append(addrs, netip.MustParseAddr(m.server))
		run(t, "ip", "addr", "add", m.server, "dev", "lo", "nodad")
		at := net.JoinHostPort(m.server, "53")
		udp, err := net.ListenPacket("udp", at)
		must(t, err)
		defer udp.Close() //nolint:errcheck // the test is over
		tcp, err := net.Listen("tcp", at)
		must(t, err)
		defer tcp.Close() //nolint:errcheck // the test is over
	}
	for _, probably := range [][]int{{os.Getpid()}, nil} {
		all, err := ReadListeners(addrs, probably)
		if err != nil || len(all) != 4 {
			t.Fatalf("%+v, %v", all, err)
		}
		for _, l := range all {
			if l.PID != os.Getpid() || !strings.HasPrefix(l.Program, "dnsredirect") {
				t.Errorf("%+v", l)
			}
		}
	}
	if all, err := ReadListeners([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil); err != nil || len(all) > 0 {
		t.Errorf("at another address: %+v, %v", all, err)
	}
}
