package watch

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"gridproxy/topology"
)

const (
	probePeriod = 2 * time.Second // from the start of a probe to that of the next
	probeLimit  = time.Second     // for one probe
	probedMax   = 4               // API proxies: a node has one for each address family
)

// Prober finds out which node-local API proxies answer, of those that a Snapshot names
// (Snapshot.APIProxies). The first Snapshot waits for the first probes, for probeLimit at most. A
// proxy that is named later does not answer until a probe has succeeded. Safe for concurrent use.
type Prober struct {
	config  Config
	changed func() // is called when a proxy begins or ceases to answer
	named   pulse  // other proxies than before

	mu      sync.Mutex
	probes  map[netip.AddrPort]proxyProbe // of the proxies that are named, probedMax at most
	answers topology.ProbedProxies        // never changed in place
	tooMany bool                          // more than probedMax are named
	begun   bool                          // there was a Snapshot
}

func newProber(c Config, changed func()) *Prober {
	return &Prober{config: c, changed: changed, named: newPulse(), probes: map[netip.AddrPort]proxyProbe{}, answers: topology.ProbedProxies{}}
}

// Answers returns the API proxies that are named now, each with whether it answers.
func (p *Prober) Answers() topology.ProbedProxies {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers
}

// answersFor returns which API proxies that slices name answer. The first call probes.
func (p *Prober) answersFor(all []*topology.Slice) topology.ProbedProxies {
	others, first := p.name(topology.APIProxies(all))
	if first {
		p.probe(context.Background(), p.due())
	}
	if others {
		p.named.send()
	}
	return p.Answers()
}

// name notes which proxies are named, and reports whether there are others than before, and whether
// this is the first Snapshot.
func (p *Prober) name(all []netip.AddrPort) (others, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, p.begun = !p.begun, true
	tooMany := len(all) > probedMax
	if tooMany {
		if !p.tooMany {
			p.config.Log.Warn(fmt.Sprintf("the EndpointSlices of default/kubernetes name more than %d node-local API proxies: "+
				"the others are not used; remove annotations %s", probedMax, topology.AnnotationLocalEndpoint), "named", len(all))
		}
		all = all[:probedMax]
	}
	p.tooMany = tooMany
	now := map[netip.AddrPort]proxyProbe{}
	for _, addr := range all {
		probe, known := p.probes[addr]
		others = others || !known
		now[addr] = probe
	}
	others = others || len(now) != len(p.probes)
	if others {
		p.probes = now
		p.judge()
	}
	return others, first
}

func (p *Prober) judge() {
	p.answers = make(topology.ProbedProxies, len(p.probes))
	for addr, probe := range p.probes {
		p.answers[addr] = probe.up
	}
}

// keepProbing probes each proxy that is named every probePeriod, until ctx ends.
func (p *Prober) keepProbing(ctx context.Context) {
	for {
		var due <-chan time.Time // never, while no proxy is named
		if next := p.next(); !next.IsZero() {
			due = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case <-p.named:
		case <-due:
		}
		p.probe(ctx, p.due())
	}
}

// due returns the proxies to probe now, and notes when to probe them again.
func (p *Prober) due() (all []netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for addr, probe := range p.probes {
		if !now.Before(probe.next) {
			probe.next = now.Add(probePeriod)
			p.probes[addr] = probe
			all = append(all, addr)
		}
	}
	return all
}

// next returns when the next proxy is to be probed; zero = no proxy is named.
func (p *Prober) next() (first time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, probe := range p.probes {
		first = earlier(first, probe.next)
	}
	return first
}

// probe probes some proxies, logs those that begin or cease to answer, and signals them. If ctx
// ends meanwhile, it does neither.
func (p *Prober) probe(ctx context.Context, due []netip.AddrPort) {
	outcomes := probeEach(ctx, due, p.config.Probe)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	differ := false
	for _, addr := range slices.SortedFunc(maps.Keys(outcomes), netip.AddrPort.Compare) {
		before, named := p.probes[addr]
		if !named {
			continue
		}
		after := before.heard(outcomes[addr])
		p.probes[addr] = after
		differ = differ || after.up != before.up
		switch {
		case after.up && !before.up:
			p.config.Log.Info("the node-local API proxy answers: default/kubernetes leads to it", "address", addr)
		case !after.up && (before.up || !before.known):
			p.config.Log.Warn("the node-local API proxy does not answer: default/kubernetes leads to the API servers until it does",
				"address", addr, "err", outcomes[addr])
			p.config.Down(addr, outcomes[addr])
		}
	}
	if differ {
		p.judge()
		p.changed()
	}
}

// proxyProbe is what is known of an API proxy. The zero value is before the first probe. Pure.
type proxyProbe struct {
	up     bool
	known  bool      // it was probed
	failed bool      // the last probe did
	next   time.Time // when to probe again
}

// heard returns p after a probe. Two failures in a row, or one of a proxy that never answered,
// mean that it does not answer. One success means that it does.
func (p proxyProbe) heard(err error) proxyProbe {
	p.up, p.known, p.failed = err == nil || p.up && !p.failed, true, err != nil
	return p
}

// ProbeOnce returns which of the API proxies that a Snapshot names answer, for a command that
// asks once. It probes probedMax of them at most.
func ProbeOnce(ctx context.Context, s topology.Snapshot) topology.ProbedProxies {
	all := topology.APIProxies(s.Slices)
	answers := topology.ProbedProxies{}
	for addr, err := range probeEach(ctx, all[:min(len(all), probedMax)], connect) {
		answers[addr] = err == nil
	}
	return answers
}

// probeEach probes proxies at the same time, within probeLimit; nil = the proxy answers.
func probeEach(ctx context.Context, all []netip.AddrPort, probe func(context.Context, netip.AddrPort) error) map[netip.AddrPort]error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	errs := make([]error, len(all))
	var probes sync.WaitGroup
	for i, addr := range all {
		probes.Go(func() { errs[i] = probe(ctx, addr) })
	}
	probes.Wait()
	outcomes := make(map[netip.AddrPort]error, len(all))
	for i, addr := range all {
		outcomes[addr] = errs[i]
	}
	return outcomes
}

// connect opens a TCP connection, and closes it at once.
func connect(ctx context.Context, addr netip.AddrPort) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return err
	}
	return conn.Close()
}
