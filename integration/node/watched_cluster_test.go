package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"
	"gridproxy/topology"
	"gridproxy/topology/watch"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const self = "edge-1"

// watchedCluster is a control plane, a Link in front of it, and a source that watches through the
// Link.
type watchedCluster struct {
	*apiserver.Cluster
	t    *testing.T
	ctx  context.Context
	api  kubernetes.Interface // past the Link
	link *apiserver.Link
	load *load

	source  *watch.Cluster
	asked   *requests
	signals atomic.Int64 // receives from Changed
}

// newWatchedCluster starts a control plane with nothing watching yet.
func newWatchedCluster(t *testing.T) *watchedCluster {
	t.Helper()
	w := &watchedCluster{Cluster: apiserver.ForTest(t, apiserver.Options{}), t: t, ctx: (2 * wait.Usual).Context(t)}
	w.api = apiserver.ClientForTest(w.t, w.Admin())
	var err error
	if w.link, err = w.NewLink(w.API); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.link.Close)
	w.load = newLoad(w.ctx, t, w.api)
	return w
}

// newSettled starts a control plane with objects, and a source that knows them.
func newSettled(t *testing.T) *watchedCluster {
	t.Helper()
	w := newWatchedCluster(t)
	w.load.fill(10)
	w.watch()
	w.settle()
	return w
}

// watch starts a source as admin through the Link.
func (w *watchedCluster) watch() { w.t.Helper(); w.watchAs(w.AdminAt(w.link.Addr)) }

// watchAs starts a source that ends with the test; it must not end before.
func (w *watchedCluster) watchAs(config *rest.Config) {
	w.t.Helper()
	w.asked = &requests{}
	config.Wrap(w.asked.wrap)
	var err error
	w.source, err = watch.NewCluster(watch.ClusterConfig{Rest: config, Node: self, Log: slog.New(slog.DiscardHandler)})
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.source.Run(ctx); err != nil || ctx.Err() == nil {
			w.t.Errorf("the source ended by itself: %v", err)
		}
	})
	running.Go(func() {
		for {
			select {
			case <-w.source.Changed():
				w.signals.Add(1)
			case <-ctx.Done():
				return
			}
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

// settle waits until the Snapshot is what a fresh list is, in every object but Nodes outside of
// this node's units, and in what the daemon makes of it. The list is read again each time: the API
// server writes objects of its own, too.
func (w *watchedCluster) settle() {
	w.t.Helper()
	var want, got topology.Snapshot // the same ones in both comparisons
	wait.Until(w.t, "the Snapshot equals a fresh list", func() error {
		want = fresh(w.ctx, w.t, w.api, self)
		var ok bool
		if got, ok = w.source.Snapshot(); !ok {
			return errors.New("nothing has been read yet")
		}
		if missing := unwatched(want, got.Watched); missing != "" {
			return errors.New(missing)
		}
		diff := cmp.Diff(facts(ofUnits(want, got.Watched)), facts(withoutHeadless(got)))
		return wait.Check(diff == "", "it does not (-list +Snapshot):\n%s", diff)
	})
	if diff := cmp.Diff(endpoints(want), endpoints(got), cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
		w.t.Errorf("a View of the Snapshot differs from one of a fresh list (-list +Snapshot):\n%s", diff)
	}
}

// endpoints are what closure leaves of each Service port.
func endpoints(s topology.Snapshot) map[string][]topology.Endpoint {
	out := map[string][]topology.Endpoint{}
	for _, p := range topology.Resolve(s, topology.Config{}).Ports {
		out[fmt.Sprintf("%s %s", p.Name, p.Name.Protocol)] = p.Cluster
	}
	return out
}

// requests notes what a client asked and how it was answered.
type requests struct {
	mu  sync.Mutex
	all []request
}

type request struct {
	resource string
	kind     string        // list, stream (a watch that begins with everything) or watch
	status   int           // 0: no answer
	selector string        // by labels
	accept   string        // which forms of an answer
	packed   bool          // the answer was compressed
	bytes    *atomic.Int64 // of the answer so far, without compression
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(q)
		query := q.URL.Query()
		made := request{resource: q.URL.Path[strings.LastIndex(q.URL.Path, "/")+1:], kind: "list", selector: query.Get("labelSelector"), accept: q.Header.Get("Accept"), bytes: &atomic.Int64{}}
		if query.Get("watch") != "" {
			made.kind = "watch"
		}
		if query.Get("sendInitialEvents") == "true" {
			made.kind = "stream"
		}
		if err == nil {
			made.status, made.packed = answer.StatusCode, answer.Uncompressed // by the client
			answer.Body = counted{answer.Body, made.bytes}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, made)
		return answer, err
	})
}

// counted counts the bytes that are read.
type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// bytesOf are the bytes of all answers about a resource with that label selector.
func (r *requests) bytesOf(resource string, selected func(selector string) bool) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum int64
	for _, q := range r.all {
		if q.resource == resource && selected(q.selector) {
			sum += q.bytes.Load()
		}
	}
	return sum
}

// whole counts how often a resource was read from the beginning.
func (r *requests) whole(resource string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, q := range r.all {
		if q.resource == resource && q.kind != "watch" && q.status == http.StatusOK {
			n++
		}
	}
	return n
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }
