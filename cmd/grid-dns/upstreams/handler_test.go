package upstreams

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
)

// waitTimeout is more than a query takes that ends at all, on a busy machine too.
const waitTimeout = 3 * QueryTimeout

// upstream is a DNS server on this machine that answers every query with a text.
type upstream struct {
	at    netip.AddrPort
	asked atomic.Int64
	rcode int
}

// listen opens a socket at a free port, until the test ends.
func listen(t *testing.T) net.PacketConn {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func newUpstream(t *testing.T, text string, rcode int) *upstream {
	t.Helper()
	conn := listen(t)
	u := &upstream{at: netip.MustParseAddrPort(conn.LocalAddr().String()), rcode: rcode}
	record := test.TXT(fmt.Sprintf("example.org. 5 IN TXT %q", text))
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		if r.Question[0].Qtype == dns.TypeTXT {
			u.asked.Add(1)
		}
		answer := new(dns.Msg).SetRcode(r, u.rcode)
		answer.Answer = []dns.RR{record}
		_ = w.WriteMsg(answer) // who is gone needs no answer
	})}
	go s.ActivateAndServe() //nolint:errcheck // ends with Shutdown
	t.Cleanup(func() { _ = s.Shutdown() })
	return u
}

// silent is an address at which queries are taken and never answered.
func silent(t *testing.T) netip.AddrPort {
	return netip.MustParseAddrPort(listen(t).LocalAddr().String())
}

// closed is an address at which nothing listens.
func closed(t *testing.T) netip.AddrPort {
	conn := listen(t)
	defer conn.Close() //nolint:errcheck // nothing was sent
	return netip.MustParseAddrPort(conn.LocalAddr().String())
}

func newHandler(t *testing.T, s Servers) *Handler {
	t.Helper()
	h := &Handler{}
	h.Set(s)
	t.Cleanup(h.Close)
	return h
}

// ask is the text of the answer, or what ServeDNS returned.
func ask(t *testing.T, h *Handler) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	w := dnstest.NewRecorder(&test.ResponseWriter{})
	rcode, err := h.ServeDNS(ctx, w, new(dns.Msg).SetQuestion("example.org.", dns.TypeTXT))
	if ctx.Err() != nil {
		t.Errorf("a query was not over after %s", waitTimeout)
	}
	if w.Msg == nil {
		return fmt.Sprintf("%s, an error: %v", dns.RcodeToString[rcode], err != nil)
	}
	if txt, ok := w.Msg.Answer[0].(*dns.TXT); ok {
		return txt.Txt[0]
	}
	return w.Msg.String()
}

// TestTiers: queries go to the cluster's DNS, and to the servers of this machine only while no Pod
// of it answers. An answer that says no is an answer.
func TestTiers(t *testing.T) {
	pod, other := newUpstream(t, "pod", dns.RcodeSuccess), newUpstream(t, "machine", dns.RcodeSuccess)
	says := newUpstream(t, "no such name", dns.RcodeNameError)
	for _, c := range []struct {
		name, want       string
		cluster, machine []netip.AddrPort
	}{
		{"both answer", "pod", []netip.AddrPort{pod.at}, []netip.AddrPort{other.at}},
		{"no Pods", "machine", nil, []netip.AddrPort{other.at}},
		{"nothing listens in the Pod", "machine", []netip.AddrPort{closed(t)}, []netip.AddrPort{other.at}},
		{"the Pod is silent", "machine", []netip.AddrPort{silent(t)}, []netip.AddrPort{other.at}},
		{"two Pods are silent", "machine", []netip.AddrPort{silent(t), silent(t)}, []netip.AddrPort{other.at}},
		{"one Pod of two has ended", "pod", []netip.AddrPort{closed(t), pod.at}, []netip.AddrPort{other.at}},
		{"the name does not exist", "no such name", []netip.AddrPort{says.at}, []netip.AddrPort{other.at}},
		{"no upstream", "SERVFAIL, an error: false", nil, nil},
		{"all are silent", "SERVFAIL, an error: true", []netip.AddrPort{silent(t)}, []netip.AddrPort{silent(t)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := ask(t, newHandler(t, Servers{Cluster: c.cluster, Machine: c.machine})); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestSet: from the next query on others are asked, and those of before no more. The same ones
// again change nothing.
func TestSet(t *testing.T) {
	before, after := newUpstream(t, "before", dns.RcodeSuccess), newUpstream(t, "after", dns.RcodeSuccess)
	h := newHandler(t, Servers{Cluster: []netip.AddrPort{before.at}})
	if got := ask(t, h); got != "before" {
		t.Fatal(got)
	}
	same := h.tiers.Load()
	h.Set(Servers{Cluster: []netip.AddrPort{before.at}})
	if h.tiers.Load() != same {
		t.Error("the same upstreams are others")
	}
	h.Set(Servers{Cluster: []netip.AddrPort{after.at}})
	for range 3 {
		if got := ask(t, h); got != "after" {
			t.Error(got)
		}
	}
	if n := before.asked.Load(); n != 1 {
		t.Errorf("the upstream of before was asked %d times", n)
	}
	h.Close()
	if got := ask(t, h); got != "SERVFAIL, an error: false" {
		t.Errorf("after the end: %s", got)
	}
}

// TestManyServers: no more than forward takes are asked.
func TestManyServers(t *testing.T) {
	one := newUpstream(t, "one", dns.RcodeSuccess)
	h := newHandler(t, Servers{Machine: slices.Repeat([]netip.AddrPort{one.at}, 100)})
	if n := len((*h.tiers.Load())[0].List()); n != serversMax {
		t.Errorf("%d servers", n)
	}
}

// TestManyQueries: queries that wait for upstreams are bounded, and those that are over do not
// count.
func TestManyQueries(t *testing.T) {
	h := newHandler(t, Servers{Cluster: []netip.AddrPort{newUpstream(t, "pod", dns.RcodeSuccess).at}})
	h.waiting.Store(queriesMax)
	for range 3 {
		if got := ask(t, h); got != "REFUSED, an error: false" {
			t.Error(got)
		}
	}
	h.waiting.Store(queriesMax - 1)
	for range 3 {
		if got := ask(t, h); got != "pod" {
			t.Error(got)
		}
	}
}

// TestLimit: a query with a silent tier and a second one leaves time to ask that.
func TestLimit(t *testing.T) {
	if clusterTimeout+answerTimeout > QueryTimeout || answerTimeout > clusterTimeout || QueryTimeout >= 2*time.Second {
		t.Errorf("a tier %s, one upstream %s, all %s", clusterTimeout, answerTimeout, QueryTimeout)
	}
}
