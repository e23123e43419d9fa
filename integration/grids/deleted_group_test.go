package grids

import (
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// pace is the pause between two requests to a Service.
const pace = 50 * time.Millisecond

// TestGroupDeletedUnderTraffic: the labels of a NodeGroup close a Service. When the group is
// deleted, no request is refused, because the labels stay. When that is allowed, the labels go, and
// the Service is refused as nothing is in its unit any more.
func TestGroupDeletedUnderTraffic(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.Apply(t, areas)
	w.Apply(t, endpointsOn("bj-2", "gz-2"))
	wait.Until(w.t, "the Nodes have the group's label", func() error { return w.wantAreas("north north north south south south") })
	w.startDaemon("bj-1")
	service := netip.AddrPortFrom(netip.MustParseAddr(w.get("service/by-area", "{.spec.clusterIP}")), 80)
	client := w.lab.Client("bj-1").Namespace
	wait.Until(w.t, "the Service is answered", func() error { _, err := client.Fetch(t.Context(), service); return err })

	requests := w.request(client, service)
	w.MustKubectl(t, "delete", "nodegroup", "area")
	wait.Until(w.t, "all Nodes record that they keep the label, or a request is refused", func() error {
		got := w.get("nodes", `{.items[*].metadata.annotations.site\.superedge\.io/kept-labels}`)
		return wait.Check(got == "area area area area area area" || requests.ended(), "they record %q", got)
	})
	until := requests.count.Load() + 40
	wait.Until(w.t, "more requests are answered, or one is refused", func() error {
		got := requests.count.Load()
		return wait.Check(got >= until || requests.ended(), "%d of %d are", got, until)
	})
	if err := requests.end(); err != nil {
		t.Fatalf("after %d answers, a request was refused: %v", requests.count.Load(), err)
	}
	if err := w.wantAreas("north north north south south south"); err != nil {
		t.Error(err)
	}
	t.Logf("%d requests were answered while the group was deleted", requests.count.Load())

	w.MustKubectl(t, "annotate", "nodes", "-l", "area", "site.superedge.io/allow-removal=area")
	wait.Until(w.t, "the Nodes are without the label", func() error { return w.wantAreas("") })
	wait.Until(w.t, "the Service is refused", func() error {
		a, err := client.Fetch(t.Context(), service)
		return wait.Check(err != nil, "it is answered by %s", a)
	})
}

// wantAreas: the values of the label area of all Nodes.
func (w *walk) wantAreas(want string) error {
	got := strings.TrimSpace(w.get("nodes", "{.items[*].metadata.labels.area}"))
	return wait.Check(got == want, "the labels area are %q, want %q", got, want)
}

// endpointsOn makes an echo server on each of these Nodes an endpoint of the Service.
func endpointsOn(nodes ...string) string {
	var endpoints []string
	for _, p := range walkLayout().Pods {
		if len(endpoints) < len(nodes) && p.Node == nodes[len(endpoints)] {
			endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s], nodeName: %s, conditions: {ready: true}}", p.Addrs[0], p.Node))
		}
	}
	return fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: by-area-1, namespace: default, labels: {kubernetes.io/service-name: by-area}}
addressType: IPv4
ports: [{name: "", port: %d, protocol: TCP}]
endpoints: [%s]
`, netns.EchoPort, strings.Join(endpoints, ", "))
}

// areas is a group of two units, and a Service that is closed by the group's key.
const areas = `
apiVersion: site.superedge.io/v1alpha2
kind: NodeUnit
metadata: {name: north}
spec: {nodes: [bj-1, bj-2, bj-3]}
---
apiVersion: site.superedge.io/v1alpha2
kind: NodeUnit
metadata: {name: south}
spec: {nodes: [gz-1, gz-2, gz-3]}
---
apiVersion: site.superedge.io/v1alpha2
kind: NodeGroup
metadata: {name: area}
spec: {nodeUnits: [north, south]}
---
apiVersion: v1
kind: Service
metadata: {name: by-area, namespace: default, annotations: {topologyKeys: '["area"]'}}
spec: {ports: [{port: 80}]}
`

// requests are requests to a Service, one after the other, until the first failure.
type requests struct {
	count  atomic.Int64
	stop   chan struct{}
	done   chan struct{}
	failed error // to be read when done is closed
}

func (w *walk) request(from *netns.Namespace, service netip.AddrPort) *requests {
	r := &requests{stop: make(chan struct{}), done: make(chan struct{})}
	ctx := w.t.Context()
	go func() {
		defer close(r.done)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-tick.C:
			}
			if _, r.failed = from.Fetch(ctx, service); r.failed != nil {
				return
			}
			r.count.Add(1)
		}
	}()
	return r
}

func (r *requests) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// end stops the requests and returns why one has failed.
func (r *requests) end() error {
	close(r.stop)
	<-r.done
	return r.failed
}
