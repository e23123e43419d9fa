package clusterzone

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"gridproxy/rules/names"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

// Name is what CoreDNS calls the plugin.
const Name = "clusterzone"

// The reverse zones. Their names that no Service and no endpoint has belong to the next plugin.
const (
	reverseIPv4 = "in-addr.arpa."
	reverseIPv6 = "ip6.arpa."
)

// Upstreamer looks up the targets of aliases that are outside the cluster domain.
type Upstreamer interface {
	Lookup(ctx context.Context, state request.Request, name string, qtype uint16) (*dns.Msg, error)
}

// Handler is the plugin.
type Handler struct {
	Next     plugin.Handler
	Upstream Upstreamer
	Random   func() uint64 // chooses the records of an answer and their order; safe for concurrent use

	zone atomic.Pointer[names.Zone]
}

var _ plugin.Handler = (*Handler)(nil)

// Serve makes h answer from z, from the next query on. Without a Zone each query fails.
func (h *Handler) Serve(z *names.Zone) { h.zone.Store(z) }

// Name returns the name of the plugin.
func (h *Handler) Name() string { return Name }

// ServeDNS answers a query about the cluster domain, or about an address that has a name there,
// and gives others to the next plugin.
func (h *Handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	z := h.zone.Load()
	if z == nil {
		return dns.RcodeServerFailure, nil
	}
	state := request.Request{W: w, Req: r}
	qname := state.QName()
	zone := zoneOf(state.Name(), z.Domain(), reverseIPv4, reverseIPv6)
	if zone == "" {
		return plugin.NextOrFailure(Name, h.Next, ctx, w, r)
	}
	if t := state.QType(); t == dns.TypeAXFR || t == dns.TypeIXFR {
		return dns.RcodeRefused, nil
	}
	b := &backend{zone: z, reverse: zone != z.Domain(), limit: names.LimitFor(state.Size()), random: h.Random, upstream: h.Upstream}
	state.Zone = qname[len(qname)-len(zone):] // as the client spells it, so that answers are spelled like it
	answer, err := answerOf(ctx, b, state)
	switch {
	case b.IsNameError(err) && b.reverse:
		return h.passOnReverse(ctx, b, state)
	case b.IsNameError(err):
		return plugin.BackendError(ctx, b, state.Zone, dns.RcodeNameError, state, nil, plugin.Options{})
	case err != nil:
		return dns.RcodeServerFailure, err
	case len(answer.records) == 0:
		return plugin.BackendError(ctx, b, state.Zone, dns.RcodeSuccess, state, nil, plugin.Options{})
	}
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative, m.Truncated = true, answer.truncated || b.more
	m.Answer, m.Extra = answer.records, answer.extra
	// The client is gone, or the server: an error of theirs is not one of the answer.
	_ = w.WriteMsg(m)
	return dns.RcodeSuccess, nil
}

// passOnReverse asks the next plugin for the names of an address that has none here. The
// cluster's DNS knows the names of other units' endpoints too: those do not exist here.
func (h *Handler) passOnReverse(ctx context.Context, b *backend, state request.Request) (int, error) {
	held := nonwriter.New(state.W)
	rcode, err := plugin.NextOrFailure(Name, h.Next, ctx, held, state.Req)
	switch {
	case held.Msg == nil:
		return rcode, err
	case slices.ContainsFunc(held.Msg.Answer, func(r dns.RR) bool { return leadsInto(b.zone.Domain(), r) }):
		return plugin.BackendError(ctx, b, state.Zone, dns.RcodeNameError, state, nil, plugin.Options{})
	}
	_ = state.W.WriteMsg(held.Msg) // as in ServeDNS
	return rcode, err
}

// leadsInto reports whether a record says that an address has a name in the domain.
func leadsInto(domain string, r dns.RR) bool {
	ptr, is := r.(*dns.PTR)
	return is && dns.IsSubDomain(domain, ptr.Ptr)
}

// zoneOf returns the one of zones that contains name, which is in lower case; "" if none does.
// No zone is in another.
func zoneOf(name string, zones ...string) string {
	if strings.Contains(name, `\`) { // whether a dot ends a label takes more to see, and is rare
		return plugin.Zones(zones).Matches(name)
	}
	for _, zone := range zones {
		if rest, found := strings.CutSuffix(name, zone); found && (rest == "" || strings.HasSuffix(rest, ".")) {
			return zone
		}
	}
	return ""
}

type answer struct {
	records, extra []dns.RR
	truncated      bool
}

// answerOf returns the records of an answer. If it returns no records and no error, the name
// exists.
func answerOf(ctx context.Context, b *backend, state request.Request) (a answer, err error) {
	zone, options := state.Zone, plugin.Options{}
	apex := len(state.Name()) == len(zone)
	switch t := state.QType(); {
	case t == dns.TypeA:
		a.records, a.truncated, err = plugin.A(ctx, b, zone, state, nil, options)
	case t == dns.TypeAAAA:
		a.records, a.truncated, err = plugin.AAAA(ctx, b, zone, state, nil, options)
	case t == dns.TypeTXT:
		a.records, a.truncated, err = plugin.TXT(ctx, b, zone, state, nil, options)
	case t == dns.TypeCNAME:
		a.records, err = plugin.CNAME(ctx, b, zone, state, options)
	case t == dns.TypePTR:
		a.records, err = plugin.PTR(ctx, b, zone, state, options)
	case t == dns.TypeMX:
		a.records, a.extra, err = plugin.MX(ctx, b, zone, state, options)
	case t == dns.TypeSRV:
		a.records, a.extra, err = plugin.SRV(ctx, b, zone, state, options)
	case t == dns.TypeSOA && apex:
		a.records, err = plugin.SOA(ctx, b, zone, state, options)
	case t == dns.TypeSOA: // no name error, as CoreDNS has it
	case t == dns.TypeNS && apex:
		a.records, a.extra, err = plugin.NS(ctx, b, zone, state, options)
	default: // no type that has records here, so it only matters whether the name exists
		other := state.NewWithQuestion(state.QName(), dns.TypeA)
		other.Zone = zone
		_, _, err = plugin.A(ctx, b, zone, other, nil, options)
	}
	return a, err
}
