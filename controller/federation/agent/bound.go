package agent

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
)

var errTooLarge = errors.New("the API server sends too much")

// bound ends what an API server sends without end. exceeded is called with the reason, perhaps more
// than once.
type bound struct {
	exceeded func(why string)
	now      func() time.Time
	objects  atomic.Int64
	lists    sync.Map // *atomic.Int64: the bytes of a list with all its pages, by its path
}

func (b *bound) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil {
			return answer, err
		}
		query, size := r.URL.Query(), new(atomic.Int64)
		if query.Has("continue") { // a server may send pages that were not asked for
			of, _ := b.lists.LoadOrStore(r.URL.Path, size)
			size, _ = of.(*atomic.Int64)
		} else if query.Get("watch") == "" {
			b.lists.Store(r.URL.Path, size)
		}
		answer.Body = &boundedBody{
			ReadCloser: answer.Body, bound: b, path: r.URL.Path, size: size, begun: b.now(),
			watches: query.Get("watch") != "" && query.Get("sendInitialEvents") != "true", // such a watch is a list
		}
		return answer, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// boundedBody is the body of an answer that ends with an error when it is too large.
type boundedBody struct {
	io.ReadCloser
	bound   *bound
	path    string
	watches bool
	begun   time.Time     // of the window of a watch
	size    *atomic.Int64 // of a list with all its pages, or of a watch in this window
}

func (r *boundedBody) Read(into []byte) (int, error) {
	n, err := r.ReadCloser.Read(into)
	if now := r.bound.now(); r.watches && now.Sub(r.begun).Abs() >= boundPeriod {
		r.begun = now
		r.size.Store(0)
	}
	if r.size.Add(int64(n)) > bodyMax {
		r.bound.exceeded(fmt.Sprintf("it answers GET %s with more than %d MiB", r.path, bodyMax>>20))
		return 0, errTooLarge
	}
	return n, err
}

// count returns a handler that passes events on to next and counts the objects of the caches.
// It calls exceeded for each new one above objectsMax.
func (b *bound) count(next toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if b.objects.Add(1) > objectsMax {
				b.exceeded(fmt.Sprintf("it has more than %d Grids and Namespaces", objectsMax))
			}
			next.OnAdd(o, false)
		},
		UpdateFunc: next.OnUpdate,
		DeleteFunc: func(o any) {
			b.objects.Add(-1)
			next.OnDelete(o)
		},
	}
}
