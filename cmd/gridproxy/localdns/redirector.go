package localdns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"gridproxy/cmd/dnsquery"
	"gridproxy/rules"
	"gridproxy/rules/dnsredirect"
)

// queryRedirect leads queries to the DNS servers of this node: a dnsredirect.Redirect.
type queryRedirect interface {
	Prepare(rules.Family) error // what the kernel needs for one family, again
	// Lead leads exactly these entries, and leaves some families as they are. It returns the families
	// for which that failed.
	Lead(entries []dnsredirect.Entry, leave rules.FamilySet) (failed rules.FamilySet, err error)
}

// redirectorConfig is what a redirector decides with.
type redirectorConfig struct {
	Server *Server
	Addrs  []netip.Addr // of the DNS servers of this node, at most one of each family
	Domain string
	Switch queryRedirect
	Always bool // --dns-when-away refuse: queries are led there whether anything answers or not

	// Prevents returns why rules do not lead queries of a family there; "" = they do.
	Prevents func(rules.Family) string

	// Switched is called after queries go elsewhere than before: to the DNS servers of this node, or,
	// for a reason, to the cluster's; and when this machine turns out to be unable to lead a family.
	Switched func(Path)
	Log      *slog.Logger
}

// Path is where queries of one family go.
type Path struct {
	Addr  netip.Addr // of the DNS servers of this node
	Local bool       // queries go there
	Why   string     // queries do not go there
	Since time.Time

	Unasked   bool          // no query comes: the cluster's DNS has no cluster IP of the family
	Prevented bool          // this machine cannot lead the family: Why says what is missing
	Wait      time.Duration // for which the DNS servers must still be well, though they are; see backoff
	Switches  int           // how often they went elsewhere than before
}

// redirector leads queries to the DNS servers of this node while these are well.
type redirector struct {
	config redirectorConfig
	asked  chan struct{} // there are new answers, or other entries

	mu      sync.Mutex
	entries []dnsredirect.Entry
	known   bool // entries were set
	answers map[netip.Addr]ownAnswers
	paths   []Path // as last led, in the order of Addrs
	backoff map[netip.Addr]backoff
	cannot  map[netip.Addr]string // why Prepare failed

	// What follows belongs to the goroutine of Run.
	prepared map[netip.Addr]preparation
	led      []dnsredirect.Entry
	left     rules.FamilySet // was left as it is
	decided  rules.FamilySet // families that are not left as they are any more
	settled  rules.FamilySet // the same, and Switched was called with the first path
	renewed  time.Time
	pending  []Path // to call Switched with, once the kernel leads so
	failed   string // the error of the last try, which was logged
}

// newRedirector returns a redirector that leads nothing before Run.
func newRedirector(c redirectorConfig) *redirector {
	k := &redirector{
		config: c, asked: make(chan struct{}, 1), answers: map[netip.Addr]ownAnswers{}, backoff: map[netip.Addr]backoff{},
		cannot: map[netip.Addr]string{}, prepared: map[netip.Addr]preparation{},
	}
	for _, addr := range c.Addrs {
		k.paths = append(k.paths, Path{Addr: addr, Why: "the daemon starts", Since: time.Now()})
	}
	return k
}

// SetEntries sets the addresses at which clients ask the cluster's DNS. Safe for concurrent
// use.
func (k *redirector) SetEntries(all []dnsredirect.Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.known || !slices.Equal(k.entries, all) {
		k.entries, k.known = all, true
		k.wake()
	}
}

// Entries returns the entries that were set last. Safe for concurrent use.
func (k *redirector) Entries() []dnsredirect.Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.entries
}

// Paths returns where queries go now, by address. Safe for concurrent use.
func (k *redirector) Paths() []Path {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.paths)
}

func (k *redirector) wake() {
	select {
	case k.asked <- struct{}{}:
	default:
	}
}

// Run leads until ctx ends. The entries stay then: they end automatically, or the next daemon
// renews them.
func (k *redirector) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	for _, addr := range k.config.Addrs {
		for _, network := range []string{"udp", "tcp"} {
			asking.Go(func() { k.keepAsking(ctx, network, addr) })
		}
	}
	defer asking.Wait()
	defer cancel()
	tick := time.NewTicker(decidePeriod)
	defer tick.Stop()
	started := time.Now()
	for {
		k.prepare()
		if !k.hasEntries() {
			started = time.Now()
		}
		paths, entries := k.decide(time.Now())
		k.lead(paths, entries, k.undecided(entries, time.Since(started)))
		select {
		case <-ctx.Done():
			return
		case <-k.config.Server.Moved():
		case <-k.asked:
		case <-tick.C:
		}
	}
}

// undecided returns the families that keep what the last daemon led. This one has led nothing
// there since it has names, which it has had for the time since: the DNS servers of this node
// may still be about to connect. A family that was left out once stays out.
func (k *redirector) undecided(entries []dnsredirect.Entry, since time.Duration) rules.FamilySet {
	var all rules.FamilySet
	for _, addr := range k.config.Addrs {
		f := rules.FamilyOf(addr)
		if since >= startGrace && k.hasEntries() || len(dnsredirect.OfFamily(entries, addr.Is6())) > 0 {
			k.decided[f] = true
		}
		all[f] = !k.decided[f]
	}
	return all
}

// hasEntries reports whether the addresses of the cluster's DNS are known, even if it has none.
func (k *redirector) hasEntries() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

// firstDecided returns the paths to the cluster's DNS that are decided for the first time, of
// families outside leave. What the last daemon led there ends now.
func (k *redirector) firstDecided(paths []Path, leave rules.FamilySet) (first []Path) {
	for _, p := range paths {
		f := rules.FamilyOf(p.Addr)
		if !leave[f] && !k.settled[f] && !p.Local && !p.Prevented {
			first = append(first, p)
		}
		k.settled[f] = k.settled[f] || !leave[f]
	}
	return first
}

// due reports whether it is time to renew, or to try again after the kernel could not lead.
func (k *redirector) due() bool { return time.Since(k.renewed) >= dnsredirect.Renew }

// preparation is how Prepare went for a family.
type preparation struct {
	succeeded bool // once
	failures  int  // since then
}

// prepare makes again what the kernel needs, when that is due. A family for which this fails is
// not led, the other one is. After a success it stays as it is until prepareFailuresMax
// failures in a row, and always where queries are led there always.
func (k *redirector) prepare() {
	if !k.due() {
		return
	}
	for _, addr := range k.config.Addrs {
		p := k.prepared[addr]
		err := k.config.Switch.Prepare(rules.FamilyOf(addr))
		text := ""
		switch {
		case err == nil:
			p = preparation{succeeded: true}
		case p.succeeded && (k.config.Always || p.failures+1 < prepareFailuresMax):
			if p.failures++; p.failures == 1 {
				k.config.Log.Warn("queries are led as before, and it is tried again", "err", err)
			}
		default:
			text = err.Error()
		}
		k.prepared[addr] = p
		k.mu.Lock()
		k.cannot[addr] = text
		k.mu.Unlock()
	}
}

// lead notes the paths, and makes the kernel lead as decided, if it does not or that must be
// renewed. It calls Switched for each path that leads elsewhere. A failure is logged and
// retried.
func (k *redirector) lead(paths []Path, entries []dnsredirect.Entry, leave rules.FamilySet) {
	changed := slices.Concat(k.pending, k.note(paths, time.Now()), k.firstDecided(paths, leave))
	if len(changed) == 0 && slices.Equal(entries, k.led) && leave == k.left && !k.due() {
		return
	}
	failed, err := k.config.Switch.Lead(entries, leave)
	k.pending = nil
	for _, p := range lastOfEach(changed) {
		if failed[rules.FamilyOf(p.Addr)] {
			k.pending = append(k.pending, p)
		} else {
			k.config.Switched(p)
		}
	}
	if err != nil {
		k.led, k.renewed = nil, time.Now().Add(askPeriod-dnsredirect.Renew) // due in a second
		if text := err.Error(); text != k.failed {
			k.failed = text
			k.config.Log.Error("leading DNS queries of a family to the servers of this node fails: what is led there ends within half a minute, and goes to the cluster's DNS then", "err", err)
		}
		return // the kernel leads that family as before
	}
	k.failed = ""
	k.led, k.left, k.renewed = entries, leave, time.Now()
}

func lastOfEach(paths []Path) (last []Path) {
	for i, p := range paths {
		if !slices.ContainsFunc(paths[i+1:], func(later Path) bool { return later.Addr == p.Addr }) {
			last = append(last, p)
		}
	}
	return last
}

// decide returns where queries are to go, in the order of Addrs, and the entries for it.
func (k *redirector) decide(now time.Time) ([]Path, []dnsredirect.Entry) {
	clients := k.config.Server.Clients()
	k.mu.Lock()
	defer k.mu.Unlock()
	var paths []Path
	var entries []dnsredirect.Entry
	for _, before := range k.paths {
		addr := before.Addr
		p := k.nextPath(before, whyNot(now, netip.AddrPortFrom(addr, dnsredirect.Port), clients, k.answers[addr]), now)
		if p.Local {
			entries = append(entries, dnsredirect.OfFamily(k.entries, addr.Is6())...)
		}
		paths = append(paths, p)
	}
	slices.SortFunc(entries, dnsredirect.Compare)
	return paths, entries
}

// nextPath returns where queries of one family are to go. before is where they go now, and
// fault is why they must not go to the DNS servers there, "" = nothing. The caller holds k.mu.
func (k *redirector) nextPath(before Path, fault string, now time.Time) Path {
	addr, family := before.Addr, rules.FamilyOf(before.Addr)
	p := Path{Addr: addr, Since: now, Why: cmp.Or(k.cannot[addr], k.config.Prevents(family))}
	k.backoff[addr] = k.backoff[addr].observed(now, fault == "" && p.Why == "")
	back := k.backoff[addr]
	switch {
	case p.Why != "":
		p.Prevented = true
	case !k.known:
		p.Why = "the cluster IP of the cluster's DNS is not known yet"
	case len(dnsredirect.OfFamily(k.entries, addr.Is6())) == 0:
		p.Unasked, p.Why = true, fmt.Sprintf("no query comes over %s: the cluster's DNS has no %s cluster IP with port %d", family, family, dnsredirect.Port)
	case k.config.Always || fault != "":
		p.Local, p.Why = k.config.Always, fault
	case !before.Local && back.wait(now) > 0:
		p.Wait, p.Why = back.wait(now), back.describe(now)
	default:
		p.Local = true
	}
	return p
}

// note takes the paths over, and returns those that lead elsewhere than before, or cannot any more.
func (k *redirector) note(paths []Path, now time.Time) (changed []Path) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, p := range paths {
		before := k.paths[i]
		p.Switches = before.Switches
		if before.Local == p.Local {
			p.Since = before.Since
		} else {
			p.Switches++
		}
		if before.Local && !p.Local && !p.Unasked {
			k.backoff[p.Addr] = k.backoff[p.Addr].after(now)
		}
		if before.Local != p.Local || p.Prevented && !before.Prevented {
			changed = append(changed, p)
		}
		k.paths[i] = p
	}
	return changed
}

// keepAsking asks one address over one network, "udp" or "tcp", while a DNS server serves
// there. It notes the answers, and returns when ctx ends.
func (k *redirector) keepAsking(ctx context.Context, network string, addr netip.Addr) {
	at := netip.AddrPortFrom(addr, dnsredirect.Port)
	tick := time.NewTicker(askPeriod)
	defer tick.Stop()
	for {
		if k.served(at) {
			err := dnsquery.Ask(ctx, network, at, k.config.Domain)
			switch {
			case err == nil:
				k.answered(network, addr, true)
			case errors.Is(err, dnsquery.ErrWrongAnswer):
				k.answered(network, addr, false)
				fallthrough
			case ctx.Err() == nil && !errors.Is(err, context.Canceled):
				k.config.Log.Debug(fmt.Sprintf("asking the DNS server of this node over %s: %v", network, err), "address", at)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *redirector) served(at netip.AddrPort) bool {
	return slices.ContainsFunc(k.config.Server.Clients(), func(c Client) bool { return slices.Contains(c.Serving, at) })
}

// answered notes a right or a wrong answer to an own query, and makes Run decide again.
func (k *redirector) answered(network string, addr netip.Addr, right bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.answers[addr]
	last, wrong := &a.TCP, &a.WrongTCP
	if network == "udp" {
		last, wrong = &a.UDP, &a.WrongUDP
	}
	if *wrong = !right; right {
		*last = time.Now()
	}
	k.answers[addr] = a
	k.wake()
}
