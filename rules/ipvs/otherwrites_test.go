package ipvs

import (
	"net/netip"
	"testing"

	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
)

// TestOtherWrites: what another process adds or alters is reported, what it removes is not, and
// neither is what belongs to others.
func TestOtherWrites(t *testing.T) {
	server := ServerKey{Addr: netip.MustParseAddrPort("10.96.0.1:80"), Proto: netfilter.TCP}
	theirs := ServerKey{Addr: netip.MustParseAddrPort("192.0.2.1:80"), Proto: netfilter.TCP}
	real := func(of ServerKey, addr string) DestinationKey {
		return DestinationKey{Server: of, Addr: netip.MustParseAddrPort(addr)}
	}
	entry := Entry{Set: "KUBE-CLUSTER-IP", Net: netip.MustParsePrefix("10.96.0.1/32"), Proto: netfilter.TCP, Port: 80}
	written := State{
		Servers:      map[ServerKey]Server{server: {Scheduler: "rr"}},
		Destinations: map[DestinationKey]Destination{real(server, "10.0.0.1:80"): {Weight: 1}, real(server, "10.0.0.2:80"): {}},
		Addresses:    map[netip.Addr]struct{}{server.Addr.Addr(): {}},
		Entries:      map[Entry]struct{}{entry: {}},
	}
	for _, test := range []struct {
		name string
		do   func(s State)
		want []string
	}{
		{"nothing", func(State) {}, nil},
		{"everything removed", func(s State) { clear(s.Servers); clear(s.Destinations); clear(s.Addresses); clear(s.Entries) }, nil},
		{"a real server drained", func(s State) { s.Destinations[real(server, "10.0.0.1:80")] = Destination{} }, nil},
		{"a virtual server of others", func(s State) {
			s.Servers[theirs] = Server{}
			s.Destinations[real(theirs, "10.0.0.9:80")] = Destination{Weight: 1}
		}, nil},
		{
			"a real server of another unit", func(s State) { s.Destinations[real(server, "10.0.1.8:80")] = Destination{Weight: 1} },
			[]string{"real server 10.0.1.8:80 of 10.96.0.1:80/tcp"},
		},
		{
			"one that drains gets connections again", func(s State) { s.Destinations[real(server, "10.0.0.2:80")] = Destination{Weight: 1} },
			[]string{"real server 10.0.0.2:80 of 10.96.0.1:80/tcp"},
		},
		{"another scheduler", func(s State) { s.Servers[server] = Server{Scheduler: "lc"} }, []string{"virtual server 10.96.0.1:80/tcp"}},
		{
			"an address and an entry",
			func(s State) {
				s.Addresses[netip.MustParseAddr("10.96.0.7")] = struct{}{}
				e := entry
				e.Port = 81
				s.Entries[e] = struct{}{}
			},
			[]string{"address 10.96.0.7", "entry 10.96.0.1,tcp:81 of set KUBE-CLUSTER-IP"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			fresh := cloned(written)
			test.do(fresh)
			got := findOtherWrites(kernelState{State: written}, kernelState{State: fresh}, func(k ServerKey) bool { return k == theirs })
			if diff := cmp.Diff(test.want, got.First); diff != "" || got.Places != len(test.want) {
				t.Errorf("%d places (-want +got):\n%s", got.Places, diff)
			}
		})
	}
}
