//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridproxy/cmd/grid-dns/clusterzone"
	zone "gridproxy/rules/names"
	"gridproxy/topology"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

const (
	defaultDNSClusters = 200
	dnsSerial          = 7
	passedOn           = "passed on"
)

// TestNamesAgree: the plugin answers every question as CoreDNS' kubernetes plugin does that reads
// the same objects, without the endpoints that closure leaves out and without bad input.
func TestNamesAgree(t *testing.T) {
	clusters := number(t, envClusters, defaultDNSClusters)
	setFlag(t, "rapid.checks", strconv.FormatUint(clusters, 10))
	seen := newDNSCoverage()
	rapid.Check(t, func(t *rapid.T) {
		c := drawDNS(t)
		rest, dropped := withoutOtherUnits(asRead(c, seen.input))
		rest = withoutRepeats(withoutRefused(rest, seen.input), seen.input)
		seen.dropped += dropped
		seen.clusters[c.Closed != nil]++
		theirs, err := newCoreDNS(rest, dnsServerAddrs(c), dnsUpstream{}, dnsNext{})
		if err != nil {
			t.Fatal(err)
		}
		ours := newClusterZone(dnsViewOf(c))
		for _, name := range dnsNames(c) {
			for _, qtype := range dnsTypes {
				q := dns.Question{Name: name, Qtype: qtype, Qclass: dns.ClassINET}
				got, want := askDNS(ours, q), askDNS(theirs, q)
				for _, d := range dnsDeviations {
					if d.about(q) && got != want {
						seen.deviating[d.reason]++
						want = d.want(q, func(q dns.Question) string { return askDNS(theirs, q) })
						if strings.EqualFold(got, want) { // the questions differ in case, and so do the owners
							want = got
						}
					}
				}
				if got != want {
					t.Fatalf("%s %s: gridproxy answers\n%s\nCoreDNS\n%s", name, dns.TypeToString[qtype], got, want)
				}
				seen.answers[kindOfDNS(got, qtype)]++
			}
		}
	})
	t.Logf("open and closed clusters %v, endpoints left out by closure %d, left out or read otherwise %v, answers %v, deviations %v",
		seen.clusters, seen.dropped, seen.input, seen.answers, seen.deviating)
	if !t.Failed() && clusters >= defaultDNSClusters {
		seen.check(t)
	}
}

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set(name, before); err != nil {
			t.Error(err)
		}
	})
}

type dnsCoverage struct {
	clusters                  map[bool]int // open and closed ones
	dropped                   int          // endpoints that closure left out
	input, answers, deviating map[string]int
}

func newDNSCoverage() *dnsCoverage {
	return &dnsCoverage{clusters: map[bool]int{}, input: map[string]int{}, answers: map[string]int{}, deviating: map[string]int{}}
}

// check fails a run that compared too little to have found anything.
func (c *dnsCoverage) check(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"NXDOMAIN", "no data", passedOn, "A", "AAAA", "SRV", "PTR", "CNAME", "TXT", "NS", "SOA"} {
		if c.answers[kind] < 40 { // a third of what is usual for the rarest
			t.Errorf("only %d answers were %q: the clusters drawn do not test it", c.answers[kind], kind)
		}
	}
	for _, d := range dnsDeviations {
		if c.deviating[d.reason] < 20 {
			t.Errorf("only %d answers deviate because %s", c.deviating[d.reason], d.reason)
		}
	}
	for _, reason := range dnsInputReasons {
		if c.input[reason] < 5 {
			t.Errorf("only %d times: %s", c.input[reason], reason)
		}
	}
	if c.clusters[true] < 50 || c.clusters[false] < 50 || c.dropped < 80 {
		t.Errorf("of %v open and closed clusters closure left out %d endpoints only", c.clusters, c.dropped)
	}
}

func kindOfDNS(answer string, qtype uint16) string {
	switch {
	case answer == passedOn:
		return passedOn
	case strings.Contains(answer, "NXDOMAIN"):
		return "NXDOMAIN"
	case !strings.Contains(answer, "answer "):
		return "no data"
	}
	return dns.TypeToString[qtype]
}

// dnsServerAddrs are those of the machine that CoreDNS runs on: of its Pod if there is one.
func dnsServerAddrs(c dnsCluster) []string {
	for _, svc := range c.Services {
		if svc.Name == dnsService {
			return []string{dnsPod4, dnsPod6}
		}
	}
	return []string{"169.254.20.12", "fd00:6772:6964::12"}
}

func newClusterZone(view topology.DNSView) plugin.Handler {
	config := zone.Config{
		Domain: dnsDomain, TTL: zone.DefaultTTL,
		NameServer:  types.NamespacedName{Namespace: dnsNamespace, Name: dnsService},
		ServerAddrs: []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")},
	}
	h := &clusterzone.Handler{Next: dnsNext{}, Upstream: dnsUpstream{}, Random: rand.Uint64}
	h.Serve(zone.New(config, view.Names(), dnsSerial))
	return h
}

// dnsNext is the plugin that gets what is not answered.
type dnsNext struct{}

func (dnsNext) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return dns.RcodeBadCookie, nil // which no other plugin returns
}

func (dnsNext) Name() string { return "next" }

// dnsUpstream answers for names outside the cluster domain.
type dnsUpstream struct{}

func (dnsUpstream) Lookup(_ context.Context, _ request.Request, name string, qtype uint16) (*dns.Msg, error) {
	m := new(dns.Msg)
	switch {
	case strings.HasPrefix(name, "fails."):
		return nil, errors.New("no upstream answers")
	case strings.HasPrefix(name, "empty."):
		m.Truncated = true
	case qtype == dns.TypeA:
		m.Answer = []dns.RR{test.A(dns.Fqdn(name) + " 60 IN A 192.0.2.77")}
	case qtype == dns.TypeAAAA:
		m.Answer = []dns.RR{test.AAAA(dns.Fqdn(name) + " 60 IN AAAA 2001:db8::77")}
	}
	return m, nil
}

// askDNS returns all that a plugin answers, as lines. Names within records are in lower case,
// because hostnames are so in a view: DNS compares names without regard to case.
func askDNS(h plugin.Handler, q dns.Question) string {
	w := nonwriter.New(&test.ResponseWriter{TCP: true}) // no answer is truncated
	r := &dns.Msg{MsgHdr: dns.MsgHdr{Id: 4711, RecursionDesired: true}, Question: []dns.Question{q}}
	rcode, err := h.ServeDNS(context.Background(), w, r)
	if rcode == dns.RcodeBadCookie && w.Msg == nil {
		return passedOn
	}
	lines := []string{fmt.Sprintf("returned %s %v", dns.RcodeToString[rcode], err)}
	if m := w.Msg; m != nil {
		lines = append(lines, fmt.Sprintf("%s authoritative=%v truncated=%v response=%v id=%d", dns.RcodeToString[m.Rcode], m.Authoritative, m.Truncated, m.Response, m.Id))
		lines = append(lines, fmt.Sprintf("the question is repeated: %v", slices.Equal(m.Question, []dns.Question{q})))
		lines = append(lines, dnsSection("answer", m.Answer, false)...)
		lines = append(lines, dnsSection("authority", m.Ns, false)...)
		lines = append(lines, dnsSection("extra", m.Extra, true)...)
	}
	return strings.Join(lines, "\n")
}

// dnsSection is the set of records of a section. fold is for a section whose owners are targets.
func dnsSection(name string, records []dns.RR, fold bool) []string {
	var lines []string
	for _, r := range records {
		owner := r.Header().String()
		data := strings.ToLower(strings.TrimPrefix(r.String(), owner))
		if fold {
			owner = strings.ToLower(owner)
		}
		lines = append(lines, name+" "+owner+data)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
