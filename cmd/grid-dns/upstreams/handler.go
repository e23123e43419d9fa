package upstreams

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/miekg/dns"
)

// Name is what CoreDNS calls the plugin.
const Name = "upstreams"

// Servers are the upstreams, in the order in which they are asked.
type Servers struct {
	Cluster []netip.AddrPort // Pods of the cluster's DNS
	Machine []netip.AddrPort // those of this machine's resolv.conf
}

// Equal reports whether two Servers are the same.
func (s Servers) Equal(o Servers) bool {
	return slices.Equal(s.Cluster, o.Cluster) && slices.Equal(s.Machine, o.Machine)
}

// Handler is the plugin. It is safe to Set the upstreams while queries are answered.
type Handler struct {
	tiers   atomic.Pointer[[]*forward.Forward]
	waiting atomic.Int64
	servers Servers // as last set; by the caller of Set
}

var _ plugin.Handler = (*Handler)(nil)

// Set replaces the upstreams, of which it uses at most serversMax of each kind. Only one
// goroutine may call it. Queries under way go on with the upstreams of before.
func (h *Handler) Set(s Servers) {
	if h.tiers.Load() != nil && s.Equal(h.servers) {
		return
	}
	var tiers []*forward.Forward
	for _, tier := range [][]netip.AddrPort{s.Cluster, s.Machine} {
		if len(tier) == 0 {
			continue
		}
		f := forward.New()
		for _, addr := range tier[:min(len(tier), serversMax)] {
			p := proxy.NewProxy(Name, addr.String(), transport.DNS)
			p.SetReadTimeout(answerTimeout)
			p.SetExpire(connectionGrace)
			f.SetProxy(p)
		}
		tiers = append(tiers, f)
	}
	old := h.tiers.Swap(&tiers)
	h.servers = s
	if old != nil {
		time.AfterFunc(2*QueryTimeout, func() { stop(*old) })
	}
}

// Close ends the health checks of all upstreams. Later queries fail.
func (h *Handler) Close() {
	if old := h.tiers.Swap(nil); old != nil {
		stop(*old)
	}
}

func stop(tiers []*forward.Forward) {
	for _, f := range tiers {
		_ = f.OnShutdown() // it always succeeds
	}
}

// Name returns the name of the plugin.
func (h *Handler) Name() string { return Name }

// ServeDNS forwards a query to the cluster's servers or, if none answers, to the machine's.
func (h *Handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > queriesMax {
		return dns.RcodeRefused, nil
	}
	tiers := h.tiers.Load()
	if tiers == nil {
		return dns.RcodeServerFailure, nil
	}
	ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
	defer cancel()
	rcode, err := dns.RcodeServerFailure, error(nil)
	for i, f := range *tiers {
		last := i == len(*tiers)-1
		if !last && down(f) {
			continue
		}
		limit := QueryTimeout
		if !last {
			limit = clusterTimeout
		}
		asking, cancel := context.WithTimeout(ctx, limit)
		rcode, err = f.ServeDNS(asking, w, r)
		cancel()
		if err == nil {
			return rcode, nil
		}
	}
	return rcode, err
}

// down reports whether all servers of f have failed their health checks.
func down(f *forward.Forward) bool {
	return !slices.ContainsFunc(f.List(), func(p *proxy.Proxy) bool { return !p.Down(failuresMax) })
}
