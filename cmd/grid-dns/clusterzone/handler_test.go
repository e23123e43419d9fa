package clusterzone

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"gridproxy/rules/names"
	"gridproxy/topology/dnsview"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
)

// next is the plugin that gets what is not answered.
func next(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return dns.RcodeNotZone, nil }

// noUpstream knows no name.
type noUpstream struct{}

func (noUpstream) Lookup(context.Context, request.Request, string, uint16) (*dns.Msg, error) {
	return nil, errors.New("no upstream answers")
}

// sample has a Service of each kind, with addr as the address of the first.
func sample(addr string) *names.Zone {
	ports := []dnsview.Port{{Name: "sql", Protocol: "TCP", Number: 5432}}
	named := func(name string, kind dnsview.Kind) *dnsview.Names {
		return &dnsview.Names{Service: types.NamespacedName{Namespace: "shop", Name: name}, Kind: kind, Ports: ports}
	}
	web, db, mail := named("web", dnsview.ClusterIP), named("db", dnsview.Headless), named("mail", dnsview.ExternalName)
	web.ClusterIPs = []netip.Addr{netip.MustParseAddr(addr), netip.MustParseAddr("fd00:10:96::1")}
	db.Endpoints = []dnsview.Endpoint{
		{Hostname: "db-beijing-0", Addr: netip.MustParseAddr("10.244.0.1"), Ports: ports},
		{Hostname: "db-beijing-1", Addr: netip.MustParseAddr("fd00:10:244::1"), Ports: ports},
	}
	db.Aliases = []dnsview.Alias{{Alias: "db-0", Hostname: "db-beijing-0"}}
	mail.ExternalName = "web.shop.svc.cluster.local"
	return names.New(
		names.Config{Domain: "cluster.local", TTL: names.DefaultTTL, ServerAddrs: []netip.Addr{netip.MustParseAddr("169.254.20.12")}},
		dnsview.View{Services: []*dnsview.Names{web, db, mail}, Namespaces: []string{"shop"}}, 1)
}

func newHandler(z *names.Zone) *Handler {
	h := &Handler{Next: plugin.HandlerFunc(next), Upstream: noUpstream{}, Random: rand.New(rand.NewPCG(1, 2)).Uint64}
	if z != nil {
		h.Serve(z)
	}
	return h
}

// ask returns the records of the answer, or what became of the query instead.
func ask(h *Handler, name string, qtype uint16) string {
	w := nonwriter.New(&test.ResponseWriter{})
	rcode, _ := h.ServeDNS(context.Background(), w, new(dns.Msg).SetQuestion(name, qtype))
	if w.Msg == nil || w.Msg.Rcode != dns.RcodeSuccess {
		if w.Msg != nil {
			rcode = w.Msg.Rcode
		}
		return dns.RcodeToString[rcode]
	}
	var texts []string
	slices.SortFunc(w.Msg.Extra, func(a, b dns.RR) int { return strings.Compare(a.String(), b.String()) }) // else random
	for _, r := range append(w.Msg.Answer, w.Msg.Extra...) {
		texts = append(texts, strings.Join(strings.Fields(r.String())[3:], " "))
	}
	return strings.Join(texts, "; ")
}

// TestAnswers has one query of each kind. That answers are those of CoreDNS is the suite
// agreement's.
func TestAnswers(t *testing.T) {
	h := newHandler(sample("10.96.0.1"))
	for _, c := range []struct {
		name  string
		qtype uint16
		want  string
	}{
		{"web.shop.svc.cluster.local.", dns.TypeA, "A 10.96.0.1"},
		{"WEB.shop.svc.Cluster.Local.", dns.TypeAAAA, "AAAA fd00:10:96::1"},
		{"_sql._tcp.web.shop.svc.cluster.local.", dns.TypeSRV, "SRV 0 50 5432 web.shop.svc.cluster.local.; A 10.96.0.1; AAAA fd00:10:96::1"},
		{"db.shop.svc.cluster.local.", dns.TypeA, "A 10.244.0.1"},
		{"db-0.db.shop.svc.cluster.local.", dns.TypeA, "A 10.244.0.1"},
		{"db-0.db.shop.svc.cluster.local.", dns.TypeSRV, "SRV 0 100 5432 db-0.db.shop.svc.cluster.local.; A 10.244.0.1"},
		{"db-0.db.shop.svc.cluster.local.", dns.TypeAAAA, ""},
		{"db-1.db.shop.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"mail.shop.svc.cluster.local.", dns.TypeA, "CNAME web.shop.svc.cluster.local.; A 10.96.0.1"},
		{"1.0.244.10.in-addr.arpa.", dns.TypePTR, "PTR db-beijing-0.db.shop.svc.cluster.local."},
		{"9.9.9.9.in-addr.arpa.", dns.TypePTR, "NOTZONE"},
		{"example.com.", dns.TypeA, "NOTZONE"},
		{"10-1-2-3.shop.pod.cluster.local.", dns.TypeA, "A 10.1.2.3"},
		{"dns-version.cluster.local.", dns.TypeTXT, `TXT "1.1.0"`},
		{"cluster.local.", dns.TypeNS, "NS ns.dns.cluster.local.; A 169.254.20.12"},
		{"cluster.local.", dns.TypeAXFR, "REFUSED"},
	} {
		if got := ask(h, c.name, c.qtype); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.name, dns.TypeToString[c.qtype], got, c.want)
		}
	}
}

// clusterDNS is a next plugin that knows a name of every address, as kube-dns does.
func clusterDNS(name string) plugin.HandlerFunc {
	return func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		m := new(dns.Msg).SetReply(r)
		m.Answer = []dns.RR{test.PTR(r.Question[0].Name + " IN PTR " + name)}
		return dns.RcodeSuccess, w.WriteMsg(m)
	}
}

// TestReverseOfOtherUnits: an address that has no name here has none in the cluster domain,
// whatever the cluster's DNS says. Other names of it are passed on.
func TestReverseOfOtherUnits(t *testing.T) {
	for name, want := range map[string]string{
		"db-guangzhou-0.db.shop.svc.Cluster.local.": "NXDOMAIN",
		"printer.example.com.":                      "PTR printer.example.com.",
		"db.othercluster.local.":                    "PTR db.othercluster.local.",
	} {
		h := newHandler(sample("10.96.0.1"))
		h.Next = clusterDNS(name)
		if got := ask(h, "9.9.244.10.in-addr.arpa.", dns.TypePTR); got != want {
			t.Errorf("an address that is %s elsewhere: got %q, want %q", name, got, want)
		}
	}
}

// TestZoneOf: the zone of a name is the one that CoreDNS finds.
func TestZoneOf(t *testing.T) {
	zones := []string{"cluster.local.", reverseIPv4, reverseIPv6}
	for _, name := range []string{
		".", "cluster.local.", "a.cluster.local.", "acluster.local.", `a\.cluster.local.`, `a\\.cluster.local.`, "local.", "cluster.local.com.",
		"in-addr.arpa.", "1.in-addr.arpa.", "1.ip6.arpa.", "arpa.", "",
	} {
		if got, want := zoneOf(name, zones...), plugin.Zones(zones).Matches(name); got != want {
			t.Errorf("%q is in %q, want %q", name, got, want)
		}
	}
}

// TestWithoutZone: a query fails before the first Zone, so that clients ask another server.
func TestWithoutZone(t *testing.T) {
	if got := ask(newHandler(nil), "web.shop.svc.cluster.local.", dns.TypeA); got != "SERVFAIL" {
		t.Errorf("got %q, want SERVFAIL", got)
	}
}

// TestServe: a Zone that is served while queries are answered is in all answers after that, and no
// answer has a part of two Zones.
func TestServe(t *testing.T) {
	before, after := "CNAME web.shop.svc.cluster.local.; A 10.96.0.1", "CNAME web.shop.svc.cluster.local.; A 10.96.0.2"
	h, next := newHandler(sample("10.96.0.1")), sample("10.96.0.2")
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for range 500 {
				if got := ask(h, "mail.shop.svc.cluster.local.", dns.TypeA); got != before && got != after {
					t.Errorf("got %q", got)
				}
			}
		})
	}
	h.Serve(next)
	if got := ask(h, "mail.shop.svc.cluster.local.", dns.TypeA); got != after {
		t.Errorf("got %q after the Zone was served", got)
	}
	clients.Wait()
}

// TestAnswerFits: no more records are made than the client's buffer has room for, and one more at
// most is looked up, however large a Service is. An answer that leaves some out is truncated.
func TestAnswerFits(t *testing.T) {
	large := &dnsview.Names{Service: types.NamespacedName{Namespace: "shop", Name: "large"}, Kind: dnsview.Headless}
	ports := make([]dnsview.Port, 100)
	for i := range ports {
		ports[i] = dnsview.Port{Name: fmt.Sprintf("p%d", i), Protocol: "TCP", Number: int32(i + 1)}
	}
	for i := range 5000 {
		large.Endpoints = append(large.Endpoints, dnsview.Endpoint{Hostname: fmt.Sprintf("h%d", i), Addr: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), Ports: ports})
	}
	h := newHandler(names.New(names.Config{Domain: "cluster.local"}, dnsview.View{Services: []*dnsview.Names{large}, Namespaces: []string{"shop"}}, 1))
	for _, qtype := range []uint16{dns.TypeA, dns.TypeSRV} {
		for _, size := range []uint16{0, 1232, 4096, dns.MaxMsgSize} {
			r := new(dns.Msg).SetQuestion("large.shop.svc.cluster.local.", qtype)
			if size > 0 {
				r.SetEdns0(size, false)
			}
			w := nonwriter.New(&test.ResponseWriter{})
			if _, err := h.ServeDNS(t.Context(), w, r); err != nil {
				t.Fatal(err)
			}
			made, room := len(w.Msg.Answer), max(int(size), dns.MinMsgSize)/16+1
			if w.Msg.Truncate(int(size)); made > room || !w.Msg.Truncated || len(w.Msg.Answer) == made {
				t.Errorf("%s into %d bytes: %d records are made and %d sent, want at most %d", dns.TypeToString[qtype], size, made, len(w.Msg.Answer), room)
			}
		}
	}
}

// FuzzMessage: no message makes the plugin panic, and each answer is one that can be sent and is
// not much larger than the Zone's records.
func FuzzMessage(f *testing.F) {
	for _, name := range []string{
		"web.shop.svc.cluster.local.", "_sql._tcp.db.shop.svc.cluster.local.", `a\.b.db.shop.svc.cluster.local.`, "mail.shop.svc.cluster.local.",
		"1.0.244.10.in-addr.arpa.", "--1.shop.pod.cluster.local.", "ns.dns.cluster.local.", "cluster.local.", "dns-version.Cluster.local.",
		"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.4.4.2.0.0.1.0.0.0.0.d.f.ip6.arpa.", ".",
	} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeSRV, dns.TypePTR, dns.TypeTXT, dns.TypeNS, dns.TypeSOA, dns.TypeANY, dns.TypeCNAME} {
			packed, err := new(dns.Msg).SetQuestion(name, qtype).Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(packed)
		}
	}
	h := newHandler(sample("10.96.0.1"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		r := new(dns.Msg)
		if r.Unpack(packed) != nil || len(r.Question) == 0 { // a server gives neither to a plugin
			return
		}
		question := r.Question[0]
		w := nonwriter.New(&test.ResponseWriter{})
		rcode, err := h.ServeDNS(context.Background(), w, r)
		if err != nil {
			t.Fatalf("%v: %v", question, err)
		}
		if w.Msg == nil {
			if rcode == dns.RcodeSuccess {
				t.Fatalf("%v: no answer", question)
			}
			return
		}
		if w.Msg.Id != r.Id || len(w.Msg.Question) != 1 || w.Msg.Question[0] != question {
			t.Fatalf("%v: the answer is to %v", question, w.Msg.Question)
		}
		if n := len(w.Msg.Answer) + len(w.Msg.Ns) + len(w.Msg.Extra); n > 8 {
			t.Fatalf("%v: %d records", question, n)
		}
		if _, err := w.Msg.Pack(); err != nil {
			t.Fatalf("%v: the answer cannot be sent: %v", question, err)
		}
	})
}
