package localdns

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/gridproxy/socket"
	"gridproxy/rules"
	"gridproxy/rules/dnsredirect"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/watch"

	"k8s.io/apimachinery/pkg/types"
)

// NodeConfig is what a Node works with.
type NodeConfig struct {
	Options   options.DNS
	Topology  topology.Config
	NodeName  string
	Source    *watch.Chain           // Second belongs to the Node
	SavedKeys map[types.UID][]string // the topology keys that a daemon before saved
	Log       *slog.Logger

	Report       func(l slog.Level, reason, text string)   // logs, and sends an Event about this machine's Node
	ReportNames  func(topology.Snapshot, topology.DNSView) // reports what is wrong with the names of Services
	WithoutMatch func() []rules.Family                     // the families whose match the kernel lacks
}

// Node tells the DNS servers of this node what DNS says, and leads queries there. Names do not wait
// for a sync of the rules.
type Node struct {
	config     NodeConfig
	server     *Server
	redirector *redirector
	inKernel   *dnsredirect.Redirect
	decided    atomic.Pointer[map[types.UID][]string] // the topology keys that the last sync read
	lacking    atomic.Pointer[rules.FamilySet]        // what WithoutMatch returned after a sync
	names      atomic.Pointer[NameCounts]             // of what was decided last
	missing    bool                                   // the cluster's DNS has no address; of keepDeciding
	ending     sync.WaitGroup                         // of endFlows
	flows      map[rules.Family]*sync.Mutex           // held while flows of the family are ended
}

// NameCounts counts what the names of all Services leave out.
type NameCounts struct {
	Services   int // that have names
	Collisions int // aliases that are not served, because an endpoint has that name
	Unnamed    int // endpoints that have no names, because DNS has only so many of one Service
	Warnings   int // Services that are not named in full
}

// NewNode prepares to serve the DNS of this node, and makes the sets and addresses in the
// kernel. It returns an error if this machine has no netlink to redirect queries with.
func NewNode(c NodeConfig) (*Node, error) {
	always := c.Options.WhenAway == options.AwayRefuse
	redirect, err := dnsredirect.Open(dnsredirect.Config{Addrs: c.Options.Addresses, Permanent: always})
	if err != nil {
		return nil, err
	}
	for _, addr := range c.Options.Addresses { // before any rule names the sets of its family
		_ = redirect.Prepare(rules.FamilyOf(addr)) // the redirector tries again, and reports what fails
	}
	n := &Node{config: c, inKernel: redirect, flows: map[rules.Family]*sync.Mutex{rules.IPv4: {}, rules.IPv6: {}}}
	n.server = NewServer(Config{Node: c.NodeName, Domain: c.Options.Domain, Service: c.Options.Service, Log: c.Log})
	n.redirector = newRedirector(redirectorConfig{
		Server: n.server, Addrs: c.Options.Addresses, Domain: c.Options.Domain, Switch: redirect, Always: always, Log: c.Log,
		Prevents: n.prevents, Switched: n.switched,
	})
	return n, nil
}

// prevents returns why the rules lead no query of a family. "" means that nothing prevents it.
func (n *Node) prevents(f rules.Family) string {
	if lacking := n.lacking.Load(); lacking == nil || !lacking[f] {
		return ""
	}
	return fmt.Sprintf("this kernel lacks the match set for %s, and all rules but those of --local-dns are written: load the module xt_set on this machine (modprobe -a xt_set ip_set_hash_ipport), "+
		"if need be after installing the package with the rest of the kernel's modules, such as linux-modules-extra or kernel-modules-extra; the daemon tries again at its next verification", f)
}

// switched ends the flows that went elsewhere, and reports where queries go.
func (n *Node) switched(p Path) {
	n.endFlowsLater(p)
	if p.Local {
		n.config.Log.Info("DNS queries of this node go to the DNS server on it", "address", p.Addr)
		return
	}
	family := rules.FamilyOf(p.Addr)
	switch {
	case p.Unasked:
		n.config.Log.Info("no DNS query of a family is led to the DNS server of this node", "family", family.String(), "why", p.Why)
		return
	case p.Prevented:
		n.config.Report(slog.LevelError, "DNSNotRedirected", fmt.Sprintf("DNS queries over %s cannot be led to the DNS server of this node, and the DNS of the cluster answers them: %s", family, p.Why))
		return
	}
	text := fmt.Sprintf("DNS queries of this node go to the DNS of the cluster, which answers with headless endpoints of all units: at %s %s", p.Addr, p.Why)
	n.config.Report(slog.LevelWarn, "DNSNotLocal", text)
}

// Synced remembers the topology keys that a sync read well, because they count for names too, and
// the families whose match the kernel lacks.
func (n *Node) Synced(r syncer.Result) {
	if keys := r.View.LastKeys; keys != nil {
		n.decided.Store(&keys)
	}
	if r.Backends == nil {
		return
	}
	var lacking rules.FamilySet
	for _, f := range n.config.WithoutMatch() {
		lacking[f] = true
	}
	n.lacking.Store(&lacking)
}

// Run serves until ctx ends, and returns nil once no flow is being ended any more.
func (n *Node) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { n.keepDeciding(ctx) })
	parts.Go(func() { n.redirector.Run(ctx) })
	parts.Go(func() { n.keepLooking(ctx) })
	n.keepServing(ctx)
	parts.Wait()
	n.ending.Wait()
	return nil
}

// keepServing serves the feed until ctx ends, again after a pause if that fails.
func (n *Node) keepServing(ctx context.Context) {
	reported := ""
	for ctx.Err() == nil {
		l, err := socket.Listen(ctx, n.config.Options.Socket)
		if err == nil {
			err = n.server.Serve(ctx, l)
		}
		if err != nil && ctx.Err() == nil && err.Error() != reported {
			reported = err.Error()
			n.config.Log.Error(fmt.Sprintf("the DNS server of this node cannot be told what DNS says: %v; free the path, or change --names-socket; tried again every %s", err, listenDelay))
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenDelay):
		}
	}
}

// keepDeciding publishes what DNS says after each change, until ctx ends: at once after a quiet
// moment. To tell a change, to answer from it and to collect the garbage costs about one and a
// half times as much as to decide: in a flood of changes all of that takes a tenth of one
// processor, as far as namesPeriod and namesPeriodMax allow.
func (n *Node) keepDeciding(ctx context.Context) {
	var memo topology.DNSMemo
	for {
		began := time.Now()
		if s, whole := n.config.Source.Snapshot(); whole && s.Namespaces != nil {
			n.publish(&memo, s)
		}
		rested := began.Add(min(max(25*time.Since(began), namesPeriod), namesPeriodMax))
		select {
		case <-ctx.Done():
			return
		case <-n.config.Source.Second():
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(rested)):
		}
	}
}

func (n *Node) publish(memo *topology.DNSMemo, s topology.Snapshot) {
	if keys := n.decided.Load(); keys != nil {
		s.LastKeys = *keys
	} else if s.LastKeys == nil {
		s.LastKeys = n.config.SavedKeys
	}
	view := memo.Resolve(s, n.config.Topology)
	n.server.Publish(view, time.Now())
	n.note(view)
	i, found := slices.BinarySearchFunc(view.Services, n.config.Options.Service, func(svc *topology.DNSService, name types.NamespacedName) int {
		return topology.CompareServices(svc.Service, name)
	})
	var entries []dnsredirect.Entry
	if found {
		entries = dnsredirect.Entries(view.Services[i])
	}
	n.reportMissing(len(entries) == 0)
	n.redirector.SetEntries(entries)
	n.config.ReportNames(s, view) // nothing waits for it
}

// reportMissing reports, when missing becomes true, that no query is led because the Service of
// the cluster's DNS has no cluster IP with port 53.
func (n *Node) reportMissing(missing bool) {
	if missing && !n.missing {
		n.config.Report(slog.LevelError, "DNSServiceMissing", fmt.Sprintf("Service %s has no cluster IP with port 53: no DNS query is led to grid-dns; check --dns-service", n.config.Options.Service))
	}
	n.missing = missing
}

// note counts what a view leaves out, for Names.
func (n *Node) note(view topology.DNSView) {
	now := NameCounts{Services: len(view.Services)}
	for _, svc := range view.Services {
		now.Collisions += len(svc.Collisions)
		now.Unnamed += svc.Unnamed
		if len(svc.Warnings) > 0 {
			now.Warnings++
		}
	}
	n.names.Store(&now)
}

// Names returns the counts of the names that were decided last.
func (n *Node) Names() NameCounts {
	if names := n.names.Load(); names != nil {
		return *names
	}
	return NameCounts{}
}

// Paths returns where queries go now, by address.
func (n *Node) Paths() []Path { return n.redirector.Paths() }

// Clients returns the DNS servers that are connected.
func (n *Node) Clients() []Client { return n.server.Clients() }

// Close closes what NewNode opened. The redirect in the kernel stays.
func (n *Node) Close() { n.inKernel.Close() }

// Remove removes, and counts in removal, the sets and addresses of a daemon with --local-dns.
func Remove(o options.DNS, removal *rules.Removal) error {
	r, err := dnsredirect.Open(dnsredirect.Config{Addrs: o.Addresses})
	if err == nil {
		defer r.Close()
		err = r.Remove(removal)
	}
	if err != nil {
		return fmt.Errorf("removing what led DNS queries to this node: %w", err)
	}
	return nil
}

// Leftovers removes what a daemon before needed, which ran with --local-dns, once the rules are
// without it.
type Leftovers struct {
	Options options.DNS
	Log     *slog.Logger
	done    bool
}

// Synced removes them once, after the first run that succeeds, and logs the result.
func (l *Leftovers) Synced(r syncer.Result) {
	if l.done || r.Err != nil || r.Backends == nil {
		return
	}
	l.done = true
	var removal rules.Removal
	err := Remove(l.Options, &removal)
	switch {
	case err != nil:
		l.Log.Warn(fmt.Sprintf("a daemon before may have run with --local-dns: %v; gridproxy cleanup removes what it left", err))
	case len(removal.Items) > 0:
		l.Log.Info("removed what a daemon with --local-dns left: sets and addresses")
	}
}
