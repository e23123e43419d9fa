package agent

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
)

// TestBound: an answer that does not end is ended, whether it is a list, a list in pages or a
// watch. A watch that brings as much in a longer time goes on.
func TestBound(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := bodyMax>>20 - 1
		if r.URL.Query().Has("endless") {
			n++
		}
		for range n {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		_, _ = w.Write([]byte("end"))
	}))
	defer server.Close()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		requests []string
		pass     time.Duration // between two reads
		exceeded bool
	}{
		"a list":                         {requests: []string{"/grids"}},
		"another list":                   {requests: []string{"/grids", "/others"}},
		"a list again":                   {requests: []string{"/grids?limit=500", "/grids?limit=500"}},
		"an endless list":                {requests: []string{"/grids?endless"}, exceeded: true},
		"an endless object":              {requests: []string{"/grids/one?endless"}, exceeded: true},
		"pages that were not asked for":  {requests: []string{"/grids?resourceVersion=5", "/grids?continue=x", "/grids?continue=y"}, exceeded: true},
		"a watch instead of a list":      {requests: []string{"/grids?watch=true&sendInitialEvents=true&endless"}, pass: time.Second, exceeded: true},
		"pages without end":              {requests: []string{"/grids?limit=500", "/grids?limit=500&continue=x"}, exceeded: true},
		"a watch":                        {requests: []string{"/grids?watch=true"}},
		"a watch that brings too much":   {requests: []string{"/grids?watch=true&endless"}, exceeded: true},
		"a watch that takes a long time": {requests: []string{"/grids?watch=true&endless"}, pass: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			b := &bound{now: func() time.Time { return now }, exceeded: func(why string) { said = why }}
			client := &http.Client{Transport: b.wrap(http.DefaultTransport)}
			var failed error
			for _, path := range test.requests {
				answer, err := client.Get(server.URL + path)
				must(t, err)
				_, failed = io.Copy(slow{pass: func() { now = now.Add(test.pass) }}, answer.Body)
				_ = answer.Body.Close()
			}
			if errors.Is(failed, errTooLarge) != test.exceeded || (said != "") != test.exceeded {
				t.Errorf("the last answer ends with %v; exceeded: %q", failed, said)
			}
		})
	}
}

// slow is where bytes go, one mebibyte in a time.
type slow struct{ pass func() }

// Write takes bytes.
func (s slow) Write(b []byte) (int, error) {
	s.pass()
	return len(b), nil
}

// TestCount: the caches of a cluster end above the bound of objects. Objects that are gone do not
// count.
func TestCount(t *testing.T) {
	exceeded := 0
	b := &bound{exceeded: func(string) { exceeded++ }}
	on := b.count(cache.ResourceEventHandlerFuncs{})
	for range objectsMax {
		on.OnAdd(nil, false)
	}
	on.OnDelete(nil)
	on.OnAdd(nil, true)
	if exceeded != 0 {
		t.Fatalf("exceeded with %d objects", objectsMax)
	}
	if on.OnAdd(nil, false); exceeded != 1 {
		t.Fatal("not exceeded")
	}
}
