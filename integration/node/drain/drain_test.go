package drain

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

// serving is a world in which gridproxy serves these Services in IPVS mode, and what it then keeps.
func serving(t *testing.T, flags []string, services ...byte) (*world, []*corev1.Service, []string) {
	t.Helper()
	needIPVS(t)
	w := newWorld(t, "nft")
	var all []*corev1.Service
	for _, last := range services {
		s := newService(last)
		all = append(all, s)
		w.Serve(s, w.all()...)
	}
	w.run("ipvs", flags...)
	return w, all, w.IPVSState(here)
}

// drains waits until a Pod's real servers of a Service have weight 0, and returns when that was.
func (w *world) drains(pod *netns.Pod, ways []traffic.Way) time.Time {
	w.t.Helper()
	w.weigh(pod, ways, "0")
	return time.Now()
}

// An endpoint that is removed takes no new connection, and those that are open go on until they
// end; only then its real servers go. All the while every new connection is answered, and by the
// others. When it comes back in mid-drain it serves again, and nothing is left over.
func TestEndpointRemoved(t *testing.T) {
	w, services, before := serving(t, nil, plain)
	gone := w.Endpoint("bj-3")
	rest := without(w.unit(), gone.Name)
	flows := w.hold(w.unit(), w.ways(plain)...)
	c := w.call(w.routes(plain)...)
	w.more(c, 3)

	w.serve(services[0], rest...)
	since := w.drains(gone, w.ways(plain))
	w.more(c, 5)
	w.only(c, since, rest...)
	w.alive(flows)

	w.serve(services[0], w.unit()...)
	w.weigh(gone, w.ways(plain), "1")
	since = time.Now()
	w.more(c, 10)
	w.only(c, since, w.unit()...)
	w.alive(flows)

	w.serve(services[0], rest...)
	w.drains(gone, w.ways(plain))
	w.alive(flows)
	traffic.End(to(gone.Name, flows))
	c.End() // a short connection counts for ten seconds after its end
	w.weigh(gone, w.ways(plain), "")
	w.none(c)
	traffic.End(flows)
	w.serve(services[0], w.all()...)
	w.settles(before)
}

// A client with affinity leaves the endpoint that it has when that is removed, for its next
// connection; the one that is open goes on.
func TestAffinityRemoved(t *testing.T) {
	w, services, before := serving(t, nil, sticky)
	ways := []traffic.Way{way(w.Client(here).Namespace, netns.VIP(netns.IPv4, sticky))}
	open := w.open(ways[0])
	gone := w.Pod(open.Pod)
	for range 20 {
		if f := w.open(ways[0]); f.Pod != gone.Name {
			t.Fatalf("a client with affinity reached %s after %s", f.Pod, gone.Name)
		}
	}
	c := w.call(ways[0])
	w.more(c, 5)
	w.serve(services[0], without(w.all(), gone.Name)...)
	since := w.drains(gone, ways)
	w.more(c, 20)
	if after := heard(c, since); len(after) != 1 || after[gone.Name] > 0 {
		t.Errorf("after %s was removed, %v answered; want one other", gone.Name, after)
	}
	w.alive([]*traffic.Flow{open})
	open.End()
	w.none(c)
	w.serve(services[0], w.all()...)
	w.settles(before)
}

// A new connection from an address and port that reached an endpoint before it was removed does not
// reach it again, although the kernel remembers the pair for two minutes.
func TestSameSourcePort(t *testing.T) {
	w, services, before := serving(t, nil, plain)
	from := way(w.Client(here).Namespace, netns.VIP(netns.IPv4, plain))
	gone := w.Endpoint("bj-3")
	w.ports(from, 41000, 12)
	w.serve(services[0], without(w.unit(), gone.Name)...)
	w.drains(gone, []traffic.Way{from})
	for port, pod := range w.ports(from, 41000, 12) {
		if pod == gone.Name {
			t.Errorf("from port %d: %s answered after it was removed", port, pod)
		}
	}
	w.serve(services[0], w.all()...)
	w.settles(before)
}

// ports asks once from each of some ports, and tells who answered.
func (w *world) ports(r traffic.Way, first, n int) map[int]string {
	w.t.Helper()
	heard := map[int]string{}
	for port := first; port < first+n; port++ {
		wait.Until(w.t, fmt.Sprintf("an answer from port %d", port), func() error {
			pod, err := w.askFrom(r, port)
			heard[port] = pod
			return err
		})
	}
	return heard
}

// askFrom asks on a new connection from one port. The server ends it, so that the port is free again
// at once on the client's side.
func (w *world) askFrom(r traffic.Way, port int) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), traffic.Deadline)
	defer cancel()
	conn, err := r.Dial(ctx, port)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return w.client.Over(conn).AskLast(ctx)
}

// When a node leaves the unit its endpoints take no new connection, also of clients with affinity,
// and open ones go on. When it is back, they serve again.
func TestUnitShrinks(t *testing.T) {
	w, _, before := serving(t, nil, plain, sticky)
	flows := w.hold(w.unit(), w.ways(plain)...)
	stuck := w.stick(w.Endpoint("bj-3"), w.Client("bj-3"))
	c, s := w.call(w.routes(plain)...), w.call(stuck.Way)
	w.more(c, 3)
	w.more(s, 3)

	w.relabel("bj-3", netns.Guangzhou)
	w.drains(w.Endpoint("bj-3"), w.ways(plain))
	w.drains(w.Pod(stuck.Pod), []traffic.Way{stuck.Way})
	since := w.drains(w.Client("bj-3"), w.ways(plain))
	w.more(c, 5)
	w.more(s, 20)
	w.only(c, since, w.Endpoint(here))
	w.only(s, since, w.Endpoint(here))
	w.alive(append(flows, stuck))

	w.relabel("bj-3", netns.Beijing)
	w.weigh(w.Endpoint("bj-3"), w.ways(plain), "1")
	w.weigh(w.Client("bj-3"), w.ways(plain), "1")
	since = time.Now()
	w.more(c, 10)
	w.only(c, since, w.unit()...)
	w.alive(append(flows, stuck))
	w.none(c)
	w.none(s)
	w.settles(before)
}

// stick opens a connection that affinity led to one of these Pods: from a Pod or the node, of either
// family.
func (w *world) stick(pods ...*netns.Pod) *traffic.Flow {
	w.t.Helper()
	for _, f := range netns.Families() {
		for _, from := range []*netns.Namespace{w.Client(here).Namespace, w.node.Namespace, w.Outside, w.Client("gz-2").Namespace} {
			one := w.open(way(from, netns.VIP(f, sticky)))
			for _, p := range pods {
				if one.Pod == p.Name {
					return one
				}
			}
			one.End()
		}
	}
	w.t.Fatal("affinity led no client to another node")
	return nil
}

// After the drain timeout a real server goes although a connection to it is open.
func TestDrainTimeout(t *testing.T) {
	w, services, before := serving(t, []string{"--ipvs-drain-timeout", "8s"}, plain)
	gone := w.Endpoint("bj-3")
	rest := without(w.unit(), gone.Name)
	flows := w.hold(w.unit(), w.ways(plain)...)
	c := w.call(w.routes(plain)...)
	w.serve(services[0], rest...)
	w.drains(gone, w.ways(plain)[:1])
	w.weigh(gone, w.ways(plain), "")
	for _, f := range to(gone.Name, flows) {
		w.over(f)
	}
	var others []*traffic.Flow
	for _, p := range rest {
		others = append(others, to(p.Name, flows)...)
	}
	w.alive(others)
	w.none(c)
	w.serve(services[0], w.all()...)
	w.settles(before)
}

// A Service that is deleted takes no new connection, but those that are open go on until they end.
// Then its servers, their addresses and set entries go, and nothing else.
func TestServiceRemoved(t *testing.T) {
	w, services, before := serving(t, nil, plain)
	other := newService(local)
	w.serve(other, w.all()...)
	for _, r := range w.ways(local)[:3] {
		// The addresses come after the servers.
		wait.Until(t, fmt.Sprintf("all of %s is written", r), func() error {
			ctx, cancel := context.WithTimeout(t.Context(), traffic.Deadline)
			defer cancel()
			_, err := r.From.Fetch(ctx, r.To)
			return err
		})
	}
	flows := w.hold(w.unit(), w.ways(local)[:3]...)
	c := w.call(w.routes(plain)...)
	w.Services, w.Slices = w.Services[:1], w.Slices[:2]
	w.Must(w.Write())
	for _, p := range w.unit() {
		w.drains(p, w.ways(local)[:3])
	}
	for _, r := range w.ways(local)[:3] {
		ctx, cancel := context.WithTimeout(t.Context(), traffic.Deadline)
		if a, err := r.From.Fetch(ctx, r.To); err == nil {
			t.Errorf("%s: %s answered after its Service was deleted", r, a.Pod)
		}
		cancel()
	}
	w.more(c, 5)
	w.alive(flows)
	traffic.End(flows)
	w.none(c)
	w.settles(before)
	_ = services
}
