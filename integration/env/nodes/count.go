package nodes

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Request is what a client asked of the API server.
type Request struct {
	Verb        string // get, list, watch, create, update, patch, apply, delete, deletecollection
	Resource    string // with its group, as kubectl writes it: pods, deployments.apps; "" for other paths
	Subresource string // such as status; "" for the object itself
	Namespace   string
	Name        string // "" for a collection
	DryRun      bool
	Code        int       // of the answer; 0: there was none
	At          time.Time // when the answer began
}

// Write says whether the request was to change an object. Leases are left out: whoever elects a leader
// renews one all the time.
func (r Request) Write() bool {
	return !r.DryRun && r.Resource != "leases.coordination.k8s.io" && r.Resource != "" &&
		!slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}

// Object returns the resource with its subresource: deployments.apps, pods/status.
func (r Request) Object() string { return strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/") }

// kind is the request without the object's name.
func (r Request) kind() string {
	what := r.Object()
	if r.DryRun {
		what += " (dry run)"
	}
	return r.Verb + " " + what
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s/%s: %d", r.kind(), r.Namespace, r.Name, r.Code)
}

// Count notes the requests that pass a transport. The zero Count is ready. Safe for concurrent use.
type Count struct {
	mu  sync.Mutex
	all []Request
	// sent and received are bytes of bodies, as they were on the wire.
	sent, received atomic.Int64
	// writing is how many writes are not answered yet.
	writing atomic.Int64
	// left is how many requests that halts selects are still answered; halted is closed with the
	// last of them. A nil halts selects none.
	left   int
	halts  func(Request) bool
	halted chan struct{}
}

// HaltAfter stops the client after n more requests that selected selects have been executed:
// neither the answer to the last of them nor any request after it goes through. The channel is
// closed then, so that a test can kill the client at exactly that point.
func (c *Count) HaltAfter(n int, selected func(Request) bool) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.halts, c.halted = n, selected, make(chan struct{})
	return c.halted
}

// note adds a request that was executed, and reports whether its answer goes through.
func (c *Count) note(r Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, r)
	if c.halts == nil {
		return true
	}
	if c.left > 0 && c.halts(r) {
		if c.left--; c.left == 0 {
			close(c.halted)
		}
	}
	return c.left > 0
}

func (c *Count) isHalted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halts != nil && c.left == 0
}

// Wrap makes every client of the configuration be counted. With GRIDPROXY_TEST_DELAY each write is
// held before it goes on.
func (c *Count) Wrap(config *rest.Config) error {
	delay, err := newDelay()
	if err != nil {
		return err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{count: c, delay: delay, next: next} })
	return nil
}

// Reset forgets all requests.
func (c *Count) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = nil
	c.sent.Store(0)
	c.received.Store(0)
}

// Bytes are the sizes of the bodies of requests and answers since the last Reset, as they were on
// the wire.
func (c *Count) Bytes() (sent, received int64) { return c.sent.Load(), c.received.Load() }

// Requests are all since the last Reset for which keep is true, in the order of their answers; a nil
// keep keeps all. A watch is noted when its stream begins.
func (c *Count) Requests(keep func(Request) bool) []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kept []Request
	for _, r := range c.all {
		if keep == nil || keep(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// Writing returns how many writes are not answered yet. Those that are answered are among Writes.
func (c *Count) Writing() int { return int(c.writing.Load()) }

// Writes are the requests that were to change an object.
func (c *Count) Writes() []Request { return c.Requests(Request.Write) }

// Tally says how many of the requests were of each kind, a kind a line.
func Tally(requests []Request) string {
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.kind()]++
	}
	var lines []string
	for kind, n := range counts {
		lines = append(lines, fmt.Sprintf("%6d %s", n, kind))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[7:], b[7:]) })
	return strings.Join(lines, "\n")
}

type counted struct {
	count *Count
	delay *delay
	next  http.RoundTripper
}

// RoundTrip notes the request when its answer begins.
func (t counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.count.isHalted() {
		return halted(r)
	}
	request := parse(r)
	if request.Write() {
		t.count.writing.Add(1)
		defer t.count.writing.Add(-1)
		if err := t.delay.hold(r.Context()); err != nil {
			return nil, err
		}
	}
	t.count.sent.Add(max(0, r.ContentLength))
	answer, err := t.next.RoundTrip(r)
	request.At = time.Now()
	if answer != nil {
		request.Code = answer.StatusCode
		answer.Body = &measured{ReadCloser: answer.Body, bytes: &t.count.received}
	}
	if !t.count.note(request) {
		if answer != nil {
			answer.Body.Close()
		}
		return halted(r)
	}
	return answer, err
}

// measured is a body whose bytes are counted as they are read.
type measured struct {
	io.ReadCloser
	bytes *atomic.Int64
}

// Read reads.
func (m *measured) Read(to []byte) (int, error) {
	n, err := m.ReadCloser.Read(to)
	m.bytes.Add(int64(n))
	return n, err
}

// halted waits until the client has gone.
func halted(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// WrappedRoundTripper lets client-go find the transport below.
func (t counted) WrappedRoundTripper() http.RoundTripper { return t.next }

// parse reads a request as the API server does: /api/VERSION/… and /apis/GROUP/VERSION/…, then
// [namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]].
func parse(r *http.Request) Request {
	query := r.URL.Query()
	request := Request{DryRun: query.Has("dryRun")}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = "."+parts[1], parts[3:]
	default:
		request.Verb = strings.ToLower(r.Method)
		return request
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		request.Namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	request.Resource, request.Name, request.Subresource = parts[0]+group, parts[1], parts[2]
	request.Verb = verb(r, request.Name != "", query.Get("watch"))
	return request
}

func verb(r *http.Request, named bool, watch string) string {
	switch r.Method {
	case http.MethodGet:
		switch {
		case watch != "" && watch != "false" && watch != "0":
			return "watch"
		case named:
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return strings.ToLower(r.Method)
}
