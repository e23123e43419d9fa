package drain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"gridproxy/integration/lab"

	"golang.org/x/sys/unix"
)

// route is a way to a Service: from where, to which address.
type route struct {
	from *lab.Namespace
	to   netip.AddrPort
}

func (r route) String() string { return fmt.Sprintf("%s to %s", r.from.Name, r.to) }

// routes are all the ways to a Service that must answer whatever happens: from a Pod, from the node
// and from outside, to its cluster IP, its ExternalIP and its NodePort.
func (w *world) routes(last byte) []route {
	var all []route
	for _, f := range lab.Families() {
		for _, to := range []netip.AddrPort{vip(f, last), external(f, last), w.nodePort(f, last)} {
			all = append(all, route{w.Client(here).Namespace, to}, route{w.Outside, to})
		}
		all = append(all, route{w.node.Namespace, vip(f, last)})
	}
	return all
}

// ways are those of the routes that connections stay open on: one of each kind.
func (w *world) ways(last byte) []route {
	return []route{
		{w.Client(here).Namespace, vip(lab.IPv4, last)},
		{w.Client(here).Namespace, vip(lab.IPv6, last)},
		{w.node.Namespace, vip(lab.IPv4, last)},
		{w.Outside, w.nodePort(lab.IPv4, last)},
		{w.Outside, w.nodePort(lab.IPv6, last)},
		{w.Outside, external(lab.IPv4, last)},
	}
}

// attempt is one short connection.
type attempt struct {
	route route
	begin time.Time
	took  time.Duration
	pod   string
	err   error
}

// callers ask on new connections, one after the other on each route, until they are told to stop.
type callers struct {
	routes   []route
	stop     context.CancelFunc
	done     sync.WaitGroup
	mu       sync.Mutex
	attempts []attempt
}

func (w *world) call(routes ...route) *callers {
	ctx, stop := context.WithCancel(w.t.Context())
	c := &callers{routes: routes, stop: stop}
	w.t.Cleanup(c.end)
	for _, r := range routes {
		c.done.Go(func() {
			for ctx.Err() == nil {
				a := attempt{route: r, begin: time.Now()}
				a.pod, a.err = w.askOnce(r)
				a.took = time.Since(a.begin)
				c.mu.Lock()
				c.attempts = append(c.attempts, a)
				c.mu.Unlock()
			}
		})
	}
	return c
}

// askOnce asks on a connection of its own.
func (w *world) askOnce(r route) (string, error) {
	ctx, cancel := w.fair()
	defer cancel()
	f, err := w.connect(ctx, r)
	if err != nil {
		return "", err
	}
	pod, err := f.ask(ctx)
	return pod, errors.Join(err, f.close())
}

// dial connects from a port.
func dial(ctx context.Context, r route, port int) (conn net.Conn, err error) {
	err = r.from.Do(func() error {
		d := net.Dialer{FallbackDelay: -1, LocalAddr: &net.TCPAddr{Port: port}, Control: reuse}
		conn, err = d.DialContext(ctx, "tcp", r.to.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("from port %d: %w", port, err)
	}
	return conn, nil
}

// reuse lets a port be taken that an ended connection still holds.
func reuse(_, _ string, c syscall.RawConn) error {
	var err error
	outer := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	return errors.Join(outer, err)
}

func (c *callers) end() {
	c.stop()
	c.done.Wait()
}

// more waits until each route was asked n times more, from its begin to its end.
func (w *world) more(c *callers, n int) {
	w.t.Helper()
	c.mu.Lock()
	from := len(c.attempts)
	c.mu.Unlock()
	w.eventually(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		count := map[route]int{}
		for _, a := range c.attempts[from:] {
			count[a.route]++
		}
		for _, r := range c.routes {
			if count[r] < n {
				return fmt.Errorf("%s: asked %d times, want %d", r, count[r], n)
			}
		}
		return nil
	})
}

// none ends the callers and wants every connection answered. It tells how many there were, and of the
// slowest how many others were answered meanwhile on each route: none if the processor was busy with
// something else, many if the packets of this one were lost.
func (w *world) none(c *callers) {
	w.t.Helper()
	c.end()
	var slowest attempt
	failed := map[string]int{}
	for _, a := range c.attempts {
		if a.took > slowest.took {
			slowest = a
		}
		if a.err != nil {
			failed[fmt.Sprintf("%s: %v", a.route, a.err)]++
		}
	}
	w.t.Logf("%d short connections, %d lost, the slowest took %s: %s, while each route was answered %.1f times",
		len(c.attempts), total(failed), slowest.took.Round(time.Millisecond), slowest.route, c.meanwhile(slowest))
	for what, n := range failed {
		w.t.Errorf("%d connections lost: %s", n, what)
	}
}

// meanwhile is how many connections were answered while one was under way, on each route in the mean.
func (c *callers) meanwhile(one attempt) float64 {
	answered := 0
	for _, a := range c.attempts {
		if a.err == nil && a.begin.After(one.begin) && a.begin.Add(a.took).Before(one.begin.Add(one.took)) {
			answered++
		}
	}
	return float64(answered) / float64(len(c.routes))
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// only wants that connections that began after a time were answered by some Pods only, and by each
// of them.
func (w *world) only(c *callers, after time.Time, pods ...*lab.Pod) {
	w.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	heard := map[string]int{}
	for _, a := range c.attempts {
		if a.begin.Before(after) || a.err != nil {
			continue
		}
		if heard[a.pod]++; !slices.Contains(names(pods), a.pod) {
			w.t.Errorf("%s: %s answered a connection that began %s after; want one of %s", a.route, a.pod, a.begin.Sub(after), names(pods))
		}
	}
	for _, name := range names(pods) {
		if heard[name] == 0 {
			w.t.Errorf("%s did not answer once: %v", name, heard)
		}
	}
}

func names(pods []*lab.Pod) []string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return all
}

// heard is who answered connections that began after a time, and how often.
func (w *world) heard(c *callers, after time.Time) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	heard := map[string]int{}
	for _, a := range c.attempts {
		if a.err == nil && !a.begin.Before(after) {
			heard[a.pod]++
		}
	}
	return heard
}
