package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"gridproxy/integration/env/netns"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How long a client waits. In a site that is whole, answers take milliseconds. When the link
// returns, a packet may be lost on a busy machine, which TCP sends again after 1 s and after 3 s.
const (
	answerWithin = time.Second
	resentWithin = 4 * time.Second
)

// vip is the first cluster IP of a Service of the sites, with the port that all of them have.
func (w *siteCluster) vip(service string) netip.AddrPort {
	return netip.AddrPortFrom(w.vips[service], 80)
}

// readVIPs reads them while the API server answers all.
func (w *siteCluster) readVIPs() {
	w.t.Helper()
	list, err := w.Client.CoreV1().Services(metav1.NamespaceDefault).List(w.t.Context(), metav1.ListOptions{})
	w.must(err)
	for _, s := range list.Items {
		w.vips[s.Name] = netip.MustParseAddr(s.Spec.ClusterIP)
	}
}

// asked is what became of the requests of one client or of several.
type asked struct {
	requests, answered int
	left               int // answers from a machine of another unit
	last               error
	first, until       time.Time // of the first failed one its begin, of the last one its end
	failures           []failure // the first few
}

// failure is a request that was not answered.
type failure struct {
	at  time.Time
	err error
}

// manyFailures are enough to find out why.
const manyFailures = 20

// list is what failed, and when, after a moment.
func (a asked) list(begin time.Time) string {
	var b strings.Builder
	for _, f := range a.failures {
		fmt.Fprintf(&b, "\n%8s  %v", f.at.Sub(begin).Round(time.Millisecond), f.err)
	}
	if a.last != nil {
		fmt.Fprintf(&b, "\n%8s  is the end of the last one: %v", a.until.Sub(begin).Round(time.Millisecond), a.last)
	}
	return b.String()
}

func (a asked) String() string {
	text := fmt.Sprintf("%d of %d", a.answered, a.requests)
	if a.left > 0 {
		text += fmt.Sprintf(" (%d left the unit)", a.left)
	}
	if !a.first.IsZero() {
		text += fmt.Sprintf(", failures over %s", a.until.Sub(a.first).Round(100*time.Millisecond))
	}
	return text
}

// failed is how many requests were not answered from the unit.
func (a asked) failed() int { return a.requests - a.answered + a.left }

func (a asked) plus(b asked) asked {
	a.requests, a.answered, a.left = a.requests+b.requests, a.answered+b.answered, a.left+b.left
	if b.last != nil {
		a.last = b.last
	}
	if a.first.IsZero() || !b.first.IsZero() && b.first.Before(a.first) {
		a.first = b.first
	}
	a.failures = append(a.failures, b.failures...)
	a.failures = a.failures[:min(len(a.failures), manyFailures)]
	if b.until.After(a.until) {
		a.until = b.until
	}
	return a
}

// ask asks once, on a new connection, from a machine of a site.
func (s *remoteSite) ask(ctx context.Context, from *netns.Namespace, to netip.AddrPort, within time.Duration) asked {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	page, err := from.Get(ctx, to, "/")
	if err != nil {
		return asked{requests: 1, last: err, first: begin, until: time.Now(), failures: []failure{{begin, err}}}
	}
	a := asked{requests: 1, answered: 1}
	if m := nodeName.FindSubmatch(page.Text); m == nil || !slices.Contains(s.machines(), string(m[1])) {
		a.left = 1
	}
	return a
}

// times asks a number of times from one machine. In kube-proxy's site, requests that fail have no
// answer after any time.
func (s *remoteSite) times(ctx context.Context, n int, from *netns.Namespace, to netip.AddrPort) asked {
	const abreast = 25
	within := answerWithin
	if s.proxy == ours {
		within = resentWithin
	}
	var sum asked
	var mu sync.Mutex
	var running sync.WaitGroup
	for range abreast {
		running.Go(func() {
			for range n / abreast {
				a := s.ask(ctx, from, to, within)
				mu.Lock()
				sum = sum.plus(a)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return sum
}

// clients ask all the time, from each machine of each site.
type clients struct {
	running sync.WaitGroup
	end     context.CancelFunc

	mu  sync.Mutex
	sum map[string]map[string]asked // by proxy and Service
}

// between two requests of one client.
const between = 100 * time.Millisecond

// clients starts asking. A Service ends in "-" if each site has its own one.
func (w *siteCluster) clients(services ...string) *clients {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	c := &clients{end: cancel, sum: map[string]map[string]asked{}}
	for _, s := range w.sites {
		c.sum[s.proxy] = map[string]asked{}
		for _, service := range services {
			name := service
			if strings.HasSuffix(service, "-") {
				name += s.unit
			}
			to := w.vip(name)
			for _, machine := range s.machines() {
				from := w.Machine(machine).Namespace
				c.running.Go(func() { c.keepAsking(ctx, s, service, from, to) })
			}
		}
	}
	return c
}

func (c *clients) keepAsking(ctx context.Context, s *remoteSite, service string, from *netns.Namespace, to netip.AddrPort) {
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a := s.ask(context.WithoutCancel(ctx), from, to, resentWithin)
		c.mu.Lock()
		c.sum[s.proxy][service] = c.sum[s.proxy][service].plus(a)
		c.mu.Unlock()
	}
}

// stop ends the clients, and returns what became of their requests.
func (c *clients) stop() map[string]map[string]asked {
	c.end()
	c.running.Wait()
	return c.sum
}

// figures are what is printed at the end: a line for each thing, a column for each proxy.
type figures struct {
	mu    sync.Mutex
	lines []string
	of    map[string]map[string]string
}

func newFigures() *figures { return &figures{of: map[string]map[string]string{}} }

func (f *figures) set(line, proxy string, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[line] == nil {
		f.of[line] = map[string]string{}
		f.lines = append(f.lines, line)
	}
	f.of[line][proxy] = fmt.Sprintf(format, args...)
}

func (f *figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-62s | %-45s | %s\n", "", ours, theirs)
	for _, line := range f.lines {
		fmt.Fprintf(&b, "%-62s | %-45s | %s\n", line, f.of[line][ours], f.of[line][theirs])
	}
	return b.String()
}
