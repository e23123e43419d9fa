package main

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"gridproxy/cmd/grid-dns/clusterzone"
	"gridproxy/rules/names"
	"gridproxy/topology/dnsfeed"
	"gridproxy/topology/dnsview"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestAdmit: however the clients take turns, the queries under way are bounded, in all and for each
// client, and a client that has few of them gets another one unless very many clients ask.
func TestAdmit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLimitedQueries([]netip.Addr{localAddr})
		clients := rapid.IntRange(1, 100).Draw(t, "clients")
		var admitted []netip.Addr
		for range rapid.IntRange(0, 200).Draw(t, "bursts") {
			client := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, clients).Draw(t, "client"))})
			for range rapid.IntRange(1, 300).Draw(t, "queries") {
				has, total := l.ofClient[client], l.total
				ok := l.admit(client, false)
				if ok {
					admitted = append(admitted, client)
				}
				if l.total > queriesMax || l.ofClient[client] > queriesOfClientMax || l.total != len(admitted) {
					t.Fatalf("%d are under way, %d of the client", l.total, l.ofClient[client])
				}
				if !ok && has < queriesOfClientBusyMax && total < queriesMax {
					t.Fatalf("a client with %d of %d queries is kept out", has, total)
				}
			}
			for n := rapid.IntRange(0, len(admitted)).Draw(t, "ended"); n > 0; n-- {
				l.release(admitted[0], false)
				admitted = admitted[1:]
			}
		}
		for _, client := range admitted {
			l.release(client, false)
		}
		if l.total != 0 || len(l.ofClient) != 0 {
			t.Fatalf("%d are under way when all have ended: %v", l.total, l.ofClient)
		}
	})
}

// TestDroppedQueries: a query too many reaches no other plugin, over UDP and TCP, and a query of
// another client does.
func TestDroppedQueries(t *testing.T) {
	l := newLimitedQueries([]netip.Addr{localAddr})
	begun, release := make(chan struct{}, 2), make(chan struct{})
	l.next = plugin.HandlerFunc(func(ctx context.Context, _ dns.ResponseWriter, _ *dns.Msg) (int, error) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return dns.RcodeServerFailure, nil
	})
	const greedy, other = "10.0.0.1", "10.0.0.2"
	ask := func(ctx context.Context, client string, tcp bool) int {
		rcode, _ := l.ServeDNS(ctx, &test.ResponseWriter{RemoteIP: client, TCP: tcp}, new(dns.Msg))
		return rcode
	}
	ended, end := context.WithCancel(t.Context())
	end()
	var asking sync.WaitGroup
	defer asking.Wait()
	defer close(release)
	for range queriesOfClientMax {
		asking.Go(func() { ask(t.Context(), greedy, false) })
		<-begun
	}
	for _, tcp := range []bool{false, true} {
		if rcode := ask(ended, greedy, tcp); rcode != dns.RcodeSuccess {
			t.Errorf("a query too many returns %d, over TCP: %t", rcode, tcp)
		}
	}
	asking.Go(func() { ask(t.Context(), other, false) })
	<-begun
}

// TestOwnRoom: when there is no room, the daemon's own query is answered, as long as this address
// has not too many.
func TestOwnRoom(t *testing.T) {
	l := newLimitedQueries([]netip.Addr{localAddr})
	l.next = replying(dns.RcodeNameError)
	ask := func(client netip.Addr) bool {
		w := &localWriter{test.ResponseWriter{RemoteIP: client.String()}, &net.UDPAddr{IP: localAddr.AsSlice(), Port: portDNS}}
		before := l.answered[localAddr].udp.Load()
		if _, err := l.ServeDNS(t.Context(), w, new(dns.Msg).SetQuestion("a.", dns.TypeA)); err != nil {
			t.Fatal(err)
		}
		return l.answered[localAddr].udp.Load() > before
	}
	l.total = queriesMax
	if ask(netip.MustParseAddr("10.0.0.1")) || !ask(localAddr) {
		t.Error("when there is no room, a client's query is answered, or the daemon's own is not")
	}
	l.ofClient[localAddr] = queriesOfDaemonMax
	if ask(localAddr) {
		t.Error("this address has more room than its own")
	}
}

// TestNestedQueryNeedsNoPlace: a query that the server asks itself for an admitted one, the target
// of an alias, is not dropped when the client has no second place.
func TestNestedQueryNeedsNoPlace(t *testing.T) {
	l := newLimitedQueries([]netip.Addr{localAddr})
	alias := &dnsview.Names{Service: types.NamespacedName{Namespace: "shop", Name: "mail"}, Kind: dnsview.ExternalName, ExternalName: "www.example.org"}
	zone := &clusterzone.Handler{Upstream: nested{l}, Random: rand.Uint64}
	zone.Serve(names.New(names.Config{Domain: "cluster.local"}, dnsview.View{Services: []*dnsview.Names{alias}, Namespaces: []string{"shop"}}, 1))
	l.next = zone
	w := &localWriter{local: &net.UDPAddr{IP: localAddr.AsSlice(), Port: portDNS}}
	l.ofClient[addrOf(w.RemoteAddr())] = queriesOfClientMax - 1
	if _, err := l.ServeDNS(t.Context(), w, new(dns.Msg).SetQuestion("mail.shop.svc.cluster.local.", dns.TypeA)); err != nil {
		t.Fatal(err)
	}
	if dropped := testutil.ToFloat64(l.dropped); dropped != 0 || l.answered[localAddr].udp.Load() == 0 {
		t.Errorf("%v queries are dropped, and %d answered", dropped, l.answered[localAddr].udp.Load())
	}
}

// nested asks the server itself, as CoreDNS does.
type nested struct{ server *limitedQueries }

func (n nested) Lookup(ctx context.Context, state request.Request, name string, qtype uint16) (*dns.Msg, error) {
	n.server.next = replying(dns.RcodeSuccess)
	w := nonwriter.New(state.W)
	_, err := n.server.ServeDNS(ctx, w, state.NewWithQuestion(name, qtype).Req)
	return w.Msg, err
}

// replying is a plugin that answers with a code.
func replying(rcode int) plugin.HandlerFunc {
	return func(_ context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
		return dns.RcodeSuccess, w.WriteMsg(new(dns.Msg).SetRcode(m, rcode))
	}
}

// localWriter is a writer at an address of this server.
type localWriter struct {
	test.ResponseWriter
	local net.Addr
}

func (w *localWriter) LocalAddr() net.Addr { return w.local }

// TestAnsweredAt: answers are counted by address and network, failures and refusals are not, and
// whoever reports the counts waits for no query.
func TestAnsweredAt(t *testing.T) {
	other := netip.MustParseAddr("fd00:6772:6964::12")
	l := newLimitedQueries([]netip.Addr{localAddr, other})
	udp := &net.UDPAddr{IP: localAddr.AsSlice(), Port: portDNS}
	tcp := net.TCPAddrFromAddrPort(netip.AddrPortFrom(other, portDNS))
	for _, c := range []struct {
		local net.Addr
		rcode int
	}{
		{udp, dns.RcodeSuccess}, {udp, dns.RcodeNameError}, {udp, dns.RcodeServerFailure}, {udp, dns.RcodeRefused}, {tcp, dns.RcodeSuccess},
		{&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, dns.RcodeSuccess},
	} {
		l.next = replying(c.rcode)
		if _, err := l.ServeDNS(t.Context(), &localWriter{local: c.local}, new(dns.Msg).SetQuestion("a.", dns.TypeA)); err != nil {
			t.Fatal(err)
		}
	}
	l.mu.Lock() // as a query has it
	defer l.mu.Unlock()
	got := l.answeredAt([]netip.AddrPort{netip.AddrPortFrom(other, portDNS), netip.AddrPortFrom(localAddr, portDNS)})
	if want := []dnsfeed.Answered{{TCP: 1}, {UDP: 2}}; !slices.Equal(got, want) {
		t.Errorf("answered %v, want %v", got, want)
	}
}
