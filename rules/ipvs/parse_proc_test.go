package ipvs

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const procHead = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
`

// procSample is as Linux 6.1 and 6.12 print it, at 250 ticks a second.
const procSample = procHead + `TCP  0A60000A:0050 rr  persistent 2700000 FFFFFFFF
  -> 0AB4000A:0050      Masq    1      3          4         
  -> 0AB40002:1F90      Masq    0      0          0         
UDP  0A60000A:0050 mh  
  -> 0AB40001:0035      Local   1      0          0         
FWM  00000007 rr  
  -> 0AB40009:0035      Masq    1      9          9         
TCP  [fd00:0096:0000:0000:0000:0000:0000:0010]:01BB sh persistent 15000 80000000
  -> [fd00:0180:0000:0000:0000:0000:0000:0002]:01BB      Masq    1      0          1         
SCTP  0A600009:0050 wlc  
FWM  00000008 IPv6 rr 
  -> [fd00:0180:0000:0000:0000:0000:0000:0003]:01BB      Masq    1      1          0         
UDP  C0A80001:0035 rr ops  persistent 250 FFFFFF00
  -> 0AB40003:0035      Route   5      0          0         
`

const tick250 = 4 * time.Millisecond

func destinationAt(server ServerKey, addr string) DestinationKey {
	return DestinationKey{Server: server, Addr: netip.MustParseAddrPort(addr)}
}

func TestParse(t *testing.T) {
	got, err := parseProc(strings.NewReader(procSample), tick250)
	must(t, err)
	tcp, udp := serverAt("10.96.0.10:80", netfilter.TCP), serverAt("10.96.0.10:80", netfilter.UDP)
	six, sctp := serverAt("[fd00:96::10]:443", netfilter.TCP), serverAt("10.96.0.9:80", netfilter.SCTP)
	foreign := serverAt("192.168.0.1:53", netfilter.UDP)
	want := filled(kernelState{
		State: State{
			Servers: map[ServerKey]Server{
				tcp: {Scheduler: "rr", Affinity: 3 * time.Hour}, udp: {Scheduler: "mh"},
				six: {Scheduler: "sh", Affinity: time.Minute}, sctp: {Scheduler: "wlc"},
				foreign: {Scheduler: "rr", Affinity: time.Second, Other: "ops mask FFFFFF00 "},
			},
			Destinations: map[DestinationKey]Destination{
				destinationAt(tcp, "10.180.0.10:80"):    {Weight: 1},
				destinationAt(tcp, "10.180.0.2:8080"):   {},
				destinationAt(udp, "10.180.0.1:53"):     {Weight: 1},
				destinationAt(six, "[fd00:180::2]:443"): {Weight: 1},
				destinationAt(foreign, "10.180.0.3:53"): {Weight: 5, Other: "Route"},
			},
		},
	})
	if diff := cmp.Diff(want, got, equateAddrs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseConnections(t *testing.T) {
	tcp, six := serverAt("10.96.0.10:80", netfilter.TCP), serverAt("[fd00:96::10]:443", netfilter.TCP)
	asked := map[DestinationKey]bool{
		destinationAt(tcp, "10.180.0.10:80"):    true,
		destinationAt(tcp, "10.180.0.2:8080"):   true,
		destinationAt(tcp, "10.180.0.3:80"):     true,
		destinationAt(six, "[fd00:180::2]:443"): true,
	}
	got, err := parseProcConnections(strings.NewReader(procSample), asked)
	must(t, err)
	want := map[DestinationKey]int{destinationAt(tcp, "10.180.0.10:80"): 7, destinationAt(tcp, "10.180.0.2:8080"): 0, destinationAt(six, "[fd00:180::2]:443"): 1}
	if diff := cmp.Diff(want, got, equateAddrs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The kernel counts in ticks; 300 of them are not a whole number of nanoseconds each.
func TestParseTimesOfEveryKernel(t *testing.T) {
	for _, hz := range []int{100, 250, 300, 1000} {
		for _, seconds := range []int{1, 10800, 86400} {
			text := fmt.Sprintf("%sTCP  0A60000A:0050 rr  persistent %d FFFFFFFF\n", procHead, seconds*hz)
			o, err := parseProc(strings.NewReader(text), time.Second/time.Duration(hz))
			got := o.Servers[serverAt("10.96.0.10:80", netfilter.TCP)].Affinity
			if want := time.Duration(seconds) * time.Second; err != nil || got != want {
				t.Errorf("%d s at %d ticks a second: got %v, %v", seconds, hz, got, err)
			}
		}
	}
}

func TestParseErrorsQuoteTheLine(t *testing.T) {
	for _, line := range []string{
		"ICMP  0A60000A:0050 rr",
		"TCP  0A60000A rr",
		"TCP  0A60000:0050 rr",
		"TCP  0A60000A:0050",
		"TCP  0A60000A:0050 rr persistent x FFFFFFFF",
		"TCP  [fd00:96::10]:01BB rr",
		"TCP  [fd00:0096:0000:0000:0000:0000:0000:0010:0001]:01BB rr",
		"TCP  0A60000A:0050 rr\n  -> 0AB4000A:0050      Masq    1      3",
		"TCP  0A60000A:0050 rr\n  -> 0AB4000G:0050      Masq    1      3   4",
	} {
		_, err := parseProc(strings.NewReader(procHead+line+"\n"), tick250)
		last := strings.TrimSpace(line[strings.LastIndexByte(line, '\n')+1:])
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", last)) {
			t.Errorf("%q: got error %v", line, err)
		}
	}
	for _, text := range []string{"", "IP Virtual Server version 1.2.1\n", "TCP  0A60000A:0050 rr\n\n\n"} {
		if _, err := parseProc(strings.NewReader(text), tick250); err == nil {
			t.Errorf("%q is no list of virtual servers, and there is no error", text)
		}
	}
}

// printProc prints as the kernel does.
func printProc(o kernelState, connections map[DestinationKey]int) string {
	var b strings.Builder
	b.WriteString(procHead)
	addr := func(a netip.AddrPort) string {
		if a.Addr().Is4() {
			return fmt.Sprintf("%X:%04X", a.Addr().As4(), a.Port())
		}
		return fmt.Sprintf("[%s]:%04X", a.Addr().StringExpanded(), a.Port())
	}
	of := map[ServerKey][]DestinationKey{}
	for d := range o.Destinations {
		of[d.Server] = append(of[d.Server], d)
	}
	for key, s := range o.Servers {
		fmt.Fprintf(&b, "%s  %s %s  ", strings.ToUpper(key.Proto.String()), addr(key.Addr), s.Scheduler)
		if s.Affinity > 0 {
			fmt.Fprintf(&b, "persistent %d %s", s.Affinity/tick250, wholeMask(key))
		}
		b.WriteByte('\n')
		for _, d := range of[key] {
			n := connections[d]
			fmt.Fprintf(&b, "  -> %s      %-7s %-6d %-10d %-10d\n", addr(d.Addr), "Masq", o.Destinations[d].Weight, n/2, (n+1)/2)
		}
	}
	return b.String()
}

func TestParseReadsWhatIsPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, connections := filled(kernelState{State: drawState(t)}), map[DestinationKey]int{}
		want.Addresses, want.Entries = map[netip.Addr]struct{}{}, map[Entry]struct{}{}
		for d := range want.Destinations {
			connections[d] = rapid.IntRange(0, 5).Draw(t, "connections")
		}
		got, err := parseProc(strings.NewReader(printProc(want, connections)), tick250)
		if err != nil {
			t.Fatal(err)
		}
		counts, err := parseProcConnections(strings.NewReader(printProc(want, connections)), connections)
		if err != nil || !maps.Equal(counts, connections) {
			t.Fatalf("connections %v, %v, want %v", counts, err, connections)
		}
		if diff := cmp.Diff(want, got, equateAddrs); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// Whatever the text: no panic, and no destination without its server.
func FuzzParse(f *testing.F) {
	f.Add(procSample)
	f.Add(procHead + "  -> 0AB4000A:0050      Masq    1      3          4         \n")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parseProc(strings.NewReader(text), tick250)
		if err != nil {
			return
		}
		for d := range o.Destinations {
			if _, found := o.Servers[d.Server]; !found {
				t.Errorf("destination %s belongs to no server", d.Addr)
			}
		}
		counts, err := parseProcConnections(strings.NewReader(text), o.Destinations)
		if err != nil || len(counts) != len(o.Destinations) {
			t.Errorf("counted %d of %d destinations: %v", len(counts), len(o.Destinations), err)
		}
	})
}
