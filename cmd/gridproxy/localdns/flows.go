package localdns

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/conntrack"
	"gridproxy/rules/dnsredirect"
)

// endFlowsLater ends the UDP flows that went elsewhere than to p, in the background: a node may
// have many flows, and the next decision comes within a second.
func (n *Node) endFlowsLater(p Path) {
	answering := p.Local || n.leaving() // those that were asked until now
	n.ending.Go(func() {
		if answering { // an answer whose flow has ended is lost
			time.Sleep(queryTimeout)
		}
		// First those of clients that keep their port: there may be thousands of others.
		n.endFlows(p, func(f conntrack.Flow) bool { return f.UsedWithin(queryTimeout) })
		n.endFlows(p, func(conntrack.Flow) bool { return true })
	})
}

// endFlows ends those of the UDP flows to the other side that may go: a resolver that keeps its
// port would go on with it. If p was left meanwhile, it does nothing. A failure is only logged.
func (n *Node) endFlows(p Path, mayGo func(conntrack.Flow) bool) {
	flows := n.flows[rules.FamilyOf(p.Addr)]
	flows.Lock()
	defer flows.Unlock()
	if !slices.ContainsFunc(n.redirector.Paths(), func(now Path) bool { return now.Addr == p.Addr && now.Local == p.Local }) {
		return
	}
	entries := n.redirector.Entries()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := conntrack.EndFlows(ctx, conntrack.Table{IPv6: p.Addr.Is6(), Proto: conntrack.UDP}, func(f conntrack.Flow) bool {
		if !mayGo(f) {
			return false
		}
		led := f.ReplySrc.Addr() == p.Addr
		if led || !p.Local {
			return led && !p.Local
		}
		return slices.ContainsFunc(entries, func(e dnsredirect.Entry) bool { return f.Dst == netip.AddrPortFrom(e.Addr, dnsredirect.Port) })
	})
	if err != nil {
		n.config.Log.Warn("flows of DNS queries could not be ended: a client that keeps its port is answered from where it was", "err", err)
	}
}

// leaving reports whether a DNS server of this node is connected and has no queries led to it any
// more: it answers those that it has got.
func (n *Node) leaving() bool {
	return slices.ContainsFunc(n.server.Clients(), func(c Client) bool { return len(c.Serving) == 0 })
}
