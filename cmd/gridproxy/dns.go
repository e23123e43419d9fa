package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/localdns"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/gridproxy/socket"
	"gridproxy/rules"
	"gridproxy/rules/conntrack"
	"gridproxy/rules/dnsredirect"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/watch"

	"k8s.io/apimachinery/pkg/types"
)

const (
	minBetweenNames  = 10 * time.Millisecond // from the start of one decision about names to that of the next
	maxBetweenNames  = 50 * time.Millisecond
	betweenListeners = 5 * time.Second // from one look at who listens to the next
	// queryUnderWay is how long most answers take, but for slow names outside of the cluster; it is
	// less than a server answers after it has left.
	queryUnderWay = time.Second
)

// nodeDNS tells the DNS server of this node what DNS says, and leads queries there. Names do not
// wait for a sync of the rules.
type nodeDNS struct {
	options options.DNS
	config  topology.Config
	log     *slog.Logger

	fork       *watch.Fork
	server     *localdns.Server
	redirector *localdns.Redirector
	inKernel   *dnsredirect.Redirect
	decided    atomic.Pointer[map[types.UID][]string] // the topology keys that the last sync read; nil = none yet
	saved      map[types.UID][]string
	lacking    atomic.Pointer[rules.FamilySet] // families of which the kernel lacks the match of the rules; nil = no sync yet
	names      atomic.Pointer[metrics.DNS]     // what was decided last, without what is known elsewhere
	report     func(reason, text string)       // logs, and makes an Event of the Node
	reporter   *event.Reporter                 // of Events about Services
	missing    bool                            // the cluster's DNS has no address; of keepDeciding
	ending     sync.WaitGroup                  // of endFlows
	flows      map[rules.Family]*sync.Mutex    // held while flows of the family are ended
}

// serveDNS sets up the DNS of this node, if the options ask for it. Where this machine has no
// netlink to redirect queries with, the daemon goes on without it.
func (d *daemon) serveDNS(o *options.Options, here topology.Host) {
	if !o.DNS.Enabled {
		return
	}
	o.DNS.Addresses = slices.DeleteFunc(slices.Clone(o.DNS.Addresses), func(a netip.Addr) bool { return a.Is4() && !here.IPv4 || a.Is6() && !here.IPv6 })
	redirect, err := dnsredirect.Open(dnsredirect.Config{Addrs: o.DNS.Addresses, Permanent: o.DNS.WhenAway == options.AwayRefuse})
	if err != nil {
		d.reportDNS("DNSNotRedirected", fmt.Sprintf("--local-dns is not in force: this machine cannot lead queries to a DNS server on it, and the DNS of the cluster answers: %v", err))
		o.DNS.Enabled = false
		return
	}
	prepare(redirect, o.DNS.Addresses)
	n := &nodeDNS{options: o.DNS, config: o.Topology(), log: d.log, fork: watch.NewFork(d.source), inKernel: redirect, saved: d.saved.LastKeys}
	n.server = localdns.NewServer(localdns.Config{Node: o.NodeName, Domain: o.DNS.Domain, Service: o.DNS.Service, Log: d.log})
	n.redirector = localdns.NewRedirector(localdns.RedirectorConfig{
		Server: n.server, Addrs: o.DNS.Addresses, Domain: o.DNS.Domain, Switch: redirect, Always: o.DNS.WhenAway == options.AwayRefuse, Log: d.log,
		Prevents: n.prevents, Switched: func(p localdns.Path) { d.reportPath(n, p) },
	})
	n.report, n.flows = d.reportDNS, map[rules.Family]*sync.Mutex{rules.IPv4: {}, rules.IPv6: {}}
	d.source, d.dns = n.fork, n
}

// prepare prepares all families, before any rule names their sets. What fails now is reported, and
// tried again, by the Redirector.
func prepare(redirect *dnsredirect.Redirect, addrs []netip.Addr) {
	for _, addr := range addrs {
		_ = redirect.Prepare(rules.FamilyOf(addr))
	}
}

// prevents returns why the rules lead no query of a family. "" means that nothing prevents it.
func (n *nodeDNS) prevents(f rules.Family) string {
	if lacking := n.lacking.Load(); lacking == nil || !lacking[f] {
		return ""
	}
	return fmt.Sprintf("this kernel lacks the match set for %s, and all rules but those of --local-dns are written: load the module xt_set on this machine (modprobe -a xt_set ip_set_hash_ipport), "+
		"if need be after installing the package with the rest of the kernel's modules, such as linux-modules-extra or kernel-modules-extra; the daemon tries again at its next verification", f)
}

// reportPath ends the flows that went elsewhere, and says where queries go. Nothing waits for the
// flows: a node may have many, and the next decision comes within a second.
func (d *daemon) reportPath(n *nodeDNS, p localdns.Path) {
	answering := p.Local || n.leaving() // those that were asked until now
	n.ending.Go(func() {
		if answering { // an answer whose flow has ended is lost
			time.Sleep(queryUnderWay)
		}
		// First those of clients that keep their port: there may be thousands of others.
		n.endFlows(p, func(f conntrack.Flow) bool { return f.UsedWithin(queryUnderWay) })
		n.endFlows(p, func(conntrack.Flow) bool { return true })
	})
	if p.Local {
		d.log.Info("DNS queries of this node go to the DNS server on it", "address", p.Addr)
		return
	}
	family := rules.FamilyOf(p.Addr)
	switch {
	case p.Unasked:
		d.log.Info("no DNS query of a family is led to the DNS server of this node", "family", family.String(), "why", p.Why)
		return
	case p.Prevented:
		d.reportDNS("DNSNotRedirected", fmt.Sprintf("DNS queries over %s cannot be led to the DNS server of this node, and the DNS of the cluster answers them: %s", family, p.Why))
		return
	}
	text := fmt.Sprintf("DNS queries of this node go to the DNS of the cluster, which answers with headless endpoints of all units: at %s %s", p.Addr, p.Why)
	d.log.Warn(text)
	if d.events != nil {
		d.events.onNode(d.node, "DNSNotLocal", excerpt.Message(text))
	}
}

// leaving reports whether a DNS server of this node is connected and has no queries led to it any
// more: it answers those that it has got.
func (n *nodeDNS) leaving() bool {
	return slices.ContainsFunc(n.server.Clients(), func(c localdns.Client) bool { return len(c.Serving) == 0 })
}

// reportDNS logs what is wrong with the DNS of this node, and sends it as an Event.
func (d *daemon) reportDNS(reason, text string) {
	d.log.Error(text)
	if d.events != nil {
		d.events.onNode(d.node, reason, excerpt.Message(text))
	}
}

// keepLooking reports another process at the addresses, once until it is another one. Two looks
// have to find it: a DNS server that connects again, or ends, is none.
func (n *nodeDNS) keepLooking(ctx context.Context) {
	tick := time.NewTicker(betweenListeners)
	defer tick.Stop()
	last, reported := "", ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var servers []int
		for _, c := range n.server.Clients() {
			servers = append(servers, c.PID)
		}
		all, err := dnsredirect.ReadListeners(n.options.Addresses, servers)
		if err != nil {
			n.log.Debug(err.Error())
			continue
		}
		text := localdns.DescribeStrangers(localdns.Strangers(all, n.server.Clients()))
		if text == last && text != reported {
			if reported = text; text != "" {
				n.report("DNSAddressTaken", text)
			}
		}
		last = text
	}
}

// endFlows ends those of the UDP flows to the other side that may go: a resolver that keeps its
// port would go on with it. A path that was left meanwhile ends nothing.
func (n *nodeDNS) endFlows(p localdns.Path, mayGo func(conntrack.Flow) bool) {
	flows := n.flows[rules.FamilyOf(p.Addr)]
	flows.Lock()
	defer flows.Unlock()
	if !slices.ContainsFunc(n.redirector.Paths(), func(now localdns.Path) bool { return now.Addr == p.Addr && now.Local == p.Local }) {
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
		n.log.Warn("flows of DNS queries could not be ended: a client that keeps its port is answered from where it was", "err", err)
	}
}

// dnsObserver hears of each sync. The driver is made after the nodeDNS.
type dnsObserver struct {
	*nodeDNS
	findings driver.Findings
}

// Synced remembers the topology keys that a sync read well, because they count for names too, and
// of which families the kernel lacks the match of the rules.
func (o dnsObserver) Synced(r syncer.Result) {
	if keys := r.View.LastKeys; keys != nil {
		o.decided.Store(&keys)
	}
	if r.Backends == nil {
		return
	}
	var lacking rules.FamilySet
	for _, f := range o.findings.WithoutLocalDNS() {
		lacking[f] = true
	}
	o.lacking.Store(&lacking)
}

// run serves until ctx ends.
func (n *nodeDNS) run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { n.keepDeciding(ctx) })
	parts.Go(func() { n.redirector.Run(ctx) })
	parts.Go(func() { n.keepLooking(ctx) })
	n.keepServing(ctx)
	parts.Wait()
	n.ending.Wait()
	return nil
}

// keepServing serves the feed, again if that fails.
func (n *nodeDNS) keepServing(ctx context.Context) {
	reported := ""
	for ctx.Err() == nil {
		l, err := socket.Listen(ctx, n.options.Socket)
		if err == nil {
			err = n.server.Serve(ctx, l)
		}
		if err != nil && ctx.Err() == nil && err.Error() != reported {
			reported = err.Error()
			n.log.Error(fmt.Sprintf("the DNS server of this node cannot be told what DNS says: %v; free the path, or change --names-socket; tried again every %s", err, rebind))
		}
		select {
		case <-ctx.Done():
		case <-time.After(rebind):
		}
	}
}

// keepDeciding publishes what DNS says after each change: at once after a quiet moment. To tell a
// change, to answer from it and to collect the garbage costs about one and a half times as much as
// to decide: in a flood of changes all of that takes a tenth of one processor, as far as
// minBetweenNames and maxBetweenNames allow.
func (n *nodeDNS) keepDeciding(ctx context.Context) {
	var memo topology.DNSMemo
	for {
		began := time.Now()
		if s, whole := n.fork.Snapshot(); whole && s.Namespaces != nil {
			n.publish(&memo, s)
		}
		rested := began.Add(min(max(25*time.Since(began), minBetweenNames), maxBetweenNames))
		select {
		case <-ctx.Done():
			return
		case <-n.fork.Second():
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(rested)):
		}
	}
}

func (n *nodeDNS) publish(memo *topology.DNSMemo, s topology.Snapshot) {
	if keys := n.decided.Load(); keys != nil {
		s.LastKeys = *keys
	} else if s.LastKeys == nil {
		s.LastKeys = n.saved
	}
	view := memo.Resolve(s, n.config)
	n.server.Publish(view, time.Now())
	n.note(view)
	i, found := slices.BinarySearchFunc(view.Services, n.options.Service, func(svc *topology.DNSService, name types.NamespacedName) int {
		return topology.CompareServices(svc.Service, name)
	})
	var entries []dnsredirect.Entry
	if found {
		entries = dnsredirect.Entries(view.Services[i])
	}
	n.reportMissing(len(entries) == 0)
	n.redirector.SetEntries(entries)
	n.reporter.Names(s, view) // nothing waits for it
}

// reportMissing says, once, that no query is led because the Service of the cluster's DNS has no
// cluster IP with port 53.
func (n *nodeDNS) reportMissing(missing bool) {
	if missing && !n.missing {
		n.report("DNSServiceMissing", fmt.Sprintf("Service %s has no cluster IP with port 53: no DNS query is led to grid-dns; check --dns-service", n.options.Service))
	}
	n.missing = missing
}

// note counts what a view leaves out.
func (n *nodeDNS) note(view topology.DNSView) {
	now := metrics.DNS{Services: len(view.Services)}
	for _, svc := range view.Services {
		now.Collisions += len(svc.Collisions)
		now.Unnamed += svc.Unnamed
		if len(svc.Warnings) > 0 {
			now.Warnings++
		}
	}
	n.names.Store(&now)
}

// counts returns what the metrics of DNS show.
func (n *nodeDNS) counts() metrics.DNS {
	var now metrics.DNS
	if names := n.names.Load(); names != nil {
		now = *names
	}
	for _, p := range n.redirector.Paths() {
		if !p.Unasked {
			now.Paths = append(now.Paths, metrics.DNSPath{Address: p.Addr.String(), Local: p.Local, Switches: p.Switches, Wait: p.Wait.Seconds()})
		}
	}
	for _, c := range n.server.Clients() {
		now.Servers++
		if !c.Behind.IsZero() {
			now.Lag = max(now.Lag, time.Since(c.Behind).Seconds())
		}
	}
	return now
}

func (n *nodeDNS) close() { n.inKernel.Close() }

// removeRedirect removes what a daemon with --local-dns needed beside rules.
func removeRedirect(o options.DNS, removal *rules.Removal) error {
	r, err := dnsredirect.Open(dnsredirect.Config{Addrs: o.Addresses})
	if err != nil {
		return fmt.Errorf("removing what led DNS queries to this node: %w", err)
	}
	defer r.Close()
	if err := r.Remove(removal); err != nil {
		return fmt.Errorf("removing what led DNS queries to this node: %w", err)
	}
	return nil
}

// redirectLeftovers removes what a daemon before needed, which ran with --local-dns, once the rules
// are without it.
type redirectLeftovers struct {
	options options.DNS
	log     *slog.Logger
	done    bool
}

// Synced acts once.
func (l *redirectLeftovers) Synced(r syncer.Result) {
	if l.done || r.Err != nil || r.Backends == nil {
		return
	}
	l.done = true
	var removal rules.Removal
	err := removeRedirect(l.options, &removal)
	switch {
	case err != nil:
		l.log.Warn(fmt.Sprintf("a daemon before may have run with --local-dns: %v; gridproxy cleanup removes what it left", err))
	case len(removal.Items) > 0:
		l.log.Info("removed what a daemon with --local-dns left: sets and addresses")
	}
}
