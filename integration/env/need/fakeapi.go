package need

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
)

// FakeAPI is a running stand-in for an API server: lists and watches of Services, EndpointSlices
// and Nodes out of memory, over plain HTTP, and Events that are not kept. Close it.
//
// A real API server with its etcd is too heavy for an emulated processor, where it takes minutes to
// start and then starves what is tested, and a real one makes default/kubernetes again within
// seconds. The other tests have the real one, from integration/env/apiserver. What this one lacks:
// authentication, storage, admission, status and other subresources, writes over HTTP, continued
// lists and old resource versions. A watch does not notice that an object begins or ends to match
// its selector.
//
// What must hold: whoever lists and then watches from the list's resource version misses nothing
// and receives everything in the order in which it was Put.
type FakeAPI struct {
	store *store
	http  *http.Server
	host  string
	ended chan struct{} // closed by Close: watches end

	swallowed atomic.Int64 // Events
}

// ServeFakeAPI answers on a listener, which Close closes.
func ServeFakeAPI(l net.Listener) *FakeAPI {
	s := &FakeAPI{store: newStore(), host: "http://" + l.Addr().String(), ended: make(chan struct{})}
	mux := http.NewServeMux()
	for _, c := range []collection{
		{s, "v1", "Service", "services"},
		{s, "v1", "Node", "nodes"},
		{s, "discovery.k8s.io/v1", "EndpointSlice", "endpointslices"},
		{s, "networking.k8s.io/v1", "ServiceCIDR", "servicecidrs"},
	} {
		mux.Handle("GET "+c.path(), c)
		mux.Handle("GET "+c.path()+"/{name}", http.HandlerFunc(c.get))
	}
	mux.HandleFunc("POST /", s.swallow)
	mux.HandleFunc("PATCH /", s.swallow)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go s.http.Serve(l) //nolint:errcheck // ends with ErrServerClosed when it is closed
	return s
}

// Close ends all watches and the listener.
func (s *FakeAPI) Close() error {
	close(s.ended)
	if err := s.http.Close(); err != nil {
		return fmt.Errorf("closing the stand-in for an API server: %w", err)
	}
	return nil
}

// URL is how clients reach it.
func (s *FakeAPI) URL() string { return s.host }

// Put adds objects or replaces them. They get their kind and resource version.
func (s *FakeAPI) Put(objects ...FakeObject) error {
	for _, o := range objects {
		if err := s.store.put(o); err != nil {
			return err
		}
	}
	return nil
}

// Remove takes objects away.
func (s *FakeAPI) Remove(objects ...FakeObject) error {
	var errs []error
	for _, o := range objects {
		errs = append(errs, s.store.remove(o))
	}
	return errors.Join(errs...)
}

// Events is how many Events were sent, repetitions included.
func (s *FakeAPI) Events() int { return int(s.swallowed.Load()) }

// swallow answers as if an Event had been kept.
func (s *FakeAPI) swallow(w http.ResponseWriter, r *http.Request) {
	s.swallowed.Add(1)
	version := "v1"
	if strings.HasPrefix(r.URL.Path, "/apis/") {
		version = "events.k8s.io/v1"
	}
	w.WriteHeader(http.StatusCreated)
	write(w, map[string]any{"apiVersion": version, "kind": "Event", "metadata": map[string]string{"name": "swallowed"}})
}

// collection serves the objects of one kind.
type collection struct {
	server              *FakeAPI
	group, kind, plural string
}

func (c collection) path() string {
	if c.group == "v1" {
		return "/api/v1/" + c.plural
	}
	return "/apis/" + c.group + "/" + c.plural
}

// ServeHTTP lists or watches.
func (c collection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if q.watch {
		c.watch(w, r, q)
		return
	}
	all, version := c.server.store.list(c.plural)
	items := []json.RawMessage{}
	for _, o := range all {
		if q.matches(o) {
			items = append(items, q.form(o))
		}
	}
	kind := metav1.TypeMeta{APIVersion: c.group, Kind: c.kind + "List"}
	if q.partial {
		kind = partialKind("PartialObjectMetadataList")
	}
	write(w, struct {
		metav1.TypeMeta
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}{kind, metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}, items})
}

// get answers one object without a namespace.
func (c collection) get(w http.ResponseWriter, r *http.Request) {
	all, _ := c.server.store.list(c.plural)
	for _, o := range all {
		if path.Base(o.key) == r.PathValue("name") {
			w.Header().Set("Content-Type", "application/json")
			write(w, o.whole)
			return
		}
	}
	http.NotFound(w, r)
}

// watch tells what happens until the client goes. With sendInitialEvents (KEP-3157) it begins with
// what there is, and marks the end of that.
func (c collection) watch(w http.ResponseWriter, r *http.Request, q query) {
	version := q.version
	if _, newest := c.server.store.list(c.plural); !q.initial && version > newest { // of a server that was here before
		http.Error(w, "the resource version is newer than any: list again", http.StatusGone)
		return
	}
	if q.initial {
		var all []stored
		all, version = c.server.store.list(c.plural)
		for _, o := range all {
			if q.matches(o) {
				write(w, frame{watch.Added, q.form(o)})
			}
		}
		write(w, frame{watch.Bookmark, c.bookmark(q, version)})
	}
	flusher := http.NewResponseController(w)
	for {
		events, more := c.server.store.since(c.plural, version)
		for _, e := range events {
			if kind, concerns := q.kindOf(e); concerns {
				write(w, frame{kind, q.form(e.object)})
			}
			version = e.version
		}
		if err := flusher.Flush(); err != nil {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		case <-c.server.ended:
			return
		}
	}
}

// kindOf is what an event is for a watch: an object that begins to match is added, and one that no
// longer does is deleted. false = the event does not concern it.
func (q query) kindOf(e event) (watch.EventType, bool) {
	now := q.matches(e.object)
	switch {
	case e.before == nil || now == q.matches(*e.before):
		return e.kind, now
	case now:
		return watch.Added, true
	default:
		return watch.Deleted, true
	}
}

// frame is one event as it goes over the wire.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

func (c collection) bookmark(q query, version int) any {
	kind := metav1.TypeMeta{APIVersion: c.group, Kind: c.kind}
	if q.partial {
		kind = partialKind("PartialObjectMetadata")
	}
	return metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

type query struct {
	watch, initial, partial bool
	version                 int
	labels                  labels.Selector
	fields                  fields.Selector
}

func parseQuery(r *http.Request) (query, error) {
	values := r.URL.Query()
	on := func(name string) bool { return slices.Contains([]string{"1", "true"}, values.Get(name)) }
	q := query{watch: on("watch"), initial: on("sendInitialEvents"), partial: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")}
	var err error
	if v := values.Get("resourceVersion"); v != "" {
		if q.version, err = strconv.Atoi(v); err != nil {
			return q, fmt.Errorf("reading resourceVersion: %w", err)
		}
	}
	if q.labels, err = labels.Parse(values.Get("labelSelector")); err != nil {
		return q, fmt.Errorf("reading labelSelector: %w", err)
	}
	if q.fields, err = fields.ParseSelector(values.Get("fieldSelector")); err != nil {
		return q, fmt.Errorf("reading fieldSelector: %w", err)
	}
	return q, nil
}

func (q query) matches(o stored) bool {
	return q.labels.Matches(o.labels) && q.fields.Matches(o.fields)
}

func (q query) form(o stored) json.RawMessage {
	if q.partial {
		return o.meta
	}
	return o.whole
}

// write sends one JSON value. A client that is gone needs no answer.
func write(w http.ResponseWriter, value any) { _ = json.NewEncoder(w).Encode(value) }
