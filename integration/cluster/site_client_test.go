package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"gridproxy/integration/env/traffic"

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
	must(w.t, err)
	for _, s := range list.Items {
		w.vips[s.Name] = netip.MustParseAddr(s.Spec.ClusterIP)
	}
}

// unanswered returns how many requests were not answered from the unit of their site.
func unanswered(t traffic.Tally) int { return len(t.Failed) + t.Count[traffic.Remote] }

// allAnswered returns an error unless all requests were answered from the unit of their site.
func (w *siteCluster) allAnswered(who string, got traffic.Tally, since time.Time) {
	w.t.Helper()
	if n := got.Count[traffic.Remote]; n > 0 {
		w.t.Errorf("%s: %d requests were answered by another unit", who, n)
	}
	if err := got.NotMeasured(0); err != nil {
		w.t.Logf("%s: %s", who, got)
		w.t.Error(err)
	} else if len(got.Failed) > 0 {
		w.t.Errorf("%s: %s%s", who, got, got.List(since))
	}
}

// ask asks once, on a new connection, from a machine of a site.
func (s *remoteSite) ask(ctx context.Context, way traffic.Way, within time.Duration) traffic.Question {
	q := traffic.Question{Way: way, Due: time.Now(), Outcome: traffic.Remote}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	page, err := way.From.Get(ctx, way.To, "/")
	if err != nil {
		q.Outcome, q.Err = traffic.Lost, err
	} else if m := nodeName.FindSubmatch(page.Text); m != nil && slices.Contains(s.machines(), string(m[1])) {
		q.Outcome = traffic.Local
	}
	return q
}

// times asks a number of times from one machine. In kube-proxy's site, requests that fail have no
// answer after any time.
func (s *remoteSite) times(ctx context.Context, n int, way traffic.Way) traffic.Tally {
	const abreast = 25
	within := answerWithin
	if s.proxy == ours {
		within = resentWithin
	}
	var sum traffic.Tally
	var mu sync.Mutex
	var running sync.WaitGroup
	for range abreast {
		running.Go(func() {
			for range n / abreast {
				q := s.ask(ctx, way, within)
				mu.Lock()
				sum = sum.With(q)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return sum
}

// machineRate is how often the client on one machine asks, per second.
const machineRate = 10

// clients ask all the time, from each machine of each site: loads by proxy and Service.
type clients map[string]map[string]*traffic.Load

// clients starts asking. A Service ends in "-" if each site has its own one.
func (w *siteCluster) clients(services ...string) clients {
	w.t.Helper()
	c := clients{}
	for _, s := range w.sites {
		c[s.proxy] = map[string]*traffic.Load{}
		for _, service := range services {
			name := service
			if strings.HasSuffix(service, "-") {
				name += s.unit
			}
			var ways []traffic.Way
			for _, machine := range s.machines() {
				ways = append(ways, traffic.Way{From: w.Machine(machine).Namespace, To: w.vip(name)})
			}
			load := traffic.Start(machineRate*len(ways), func(ctx context.Context, way traffic.Way) (traffic.Ask, error) {
				return func() traffic.Question { return s.ask(ctx, way, resentWithin) }, nil
			}, ways...)
			w.t.Cleanup(func() { _, _ = load.Stop() })
			c[s.proxy][service] = load
		}
	}
	return c
}

// stop ends the clients, and returns what became of their requests.
func (w *siteCluster) stop(c clients) map[string]map[string]traffic.Tally {
	w.t.Helper()
	sums := map[string]map[string]traffic.Tally{}
	for proxy, loads := range c {
		sums[proxy] = map[string]traffic.Tally{}
		for service, load := range loads {
			tally, err := load.Stop()
			must(w.t, err)
			sums[proxy][service] = tally
		}
	}
	return sums
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
