package site

import (
	"context"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/site/assign"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type serviceCache struct {
	cache.Cache
	services []metav1.PartialObjectMetadata
}

// List fills in the Services.
func (c *serviceCache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*metav1.PartialObjectMetadataList).Items = c.services
	return nil
}

// serviceInformer is an informer that has been filled, or not.
type serviceInformer struct {
	cache.Informer
	synced bool
}

// HasSynced reports whether it has been filled.
func (i *serviceInformer) HasSynced() bool { return i.synced }

// newServiceUses reads one Service, web, from a cache.
func newServiceUses() (*uses, *serviceCache, *serviceInformer) {
	c, informer := &serviceCache{services: make([]metav1.PartialObjectMetadata, 1)}, &serviceInformer{synced: true}
	c.services[0].Namespace, c.services[0].Name, c.services[0].UID = "shop", "web", "1"
	u := newUses(c)
	u.sources = u.sources[:1]
	u.sources[0].informer = informer
	return u, c, informer
}

// TestMalformedKeepsLastKeys: a Service names its last valid keys while its annotation is
// malformed, until it is valid again or the Service is gone.
func TestMalformedKeepsLastKeys(t *testing.T) {
	u, c, _ := newServiceUses()
	for _, step := range []struct {
		annotation string // "-": the Service is gone
		named, not string
	}{
		{`["a","b"]`, "a b", "c"},
		{`["c"`, "a b c", "d"},
		{`["e"`, "a b e", "c d"},
		{`["d"]`, "d", "a b c"},
		{`-`, "", "a b c d"},
	} {
		c.services[0].Annotations = map[string]string{"topologyKeys": step.annotation}
		if step.annotation == "-" {
			c.services = nil
		}
		all, _, err := u.read(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range strings.Fields(step.named + " " + step.not) {
			if want := strings.Contains(step.named, key); all.MayName(key) != want {
				t.Errorf("annotation %s: key %s is named: %t, want %t", step.annotation, key, !want, want)
			}
		}
	}
	if len(u.lastKeys) > 0 {
		t.Errorf("keys of a Service that is gone: %v", u.lastKeys)
	}
}

// TestUnsyncedUses: while a cache is not filled, it is not known which keys are named. A decision
// waits for it, but not without end.
func TestUnsyncedUses(t *testing.T) {
	u, _, informer := newServiceUses()
	informer.synced = false
	begin := time.Unix(1000, 0)
	for _, step := range []struct {
		after time.Duration
		wait  bool
	}{{0, true}, {usesTimeout - 1, true}, {usesTimeout, false}} {
		if all, wait, err := u.read(t.Context(), begin.Add(step.after)); all != nil || wait != step.wait || err != nil {
			t.Errorf("after %s: %v, wait %t, %v", step.after, all, wait, err)
		}
	}
	informer.synced = true
	if all, wait, err := u.read(t.Context(), begin.Add(time.Hour)); all == nil || wait || err != nil {
		t.Errorf("in the end: %v, wait %t, %v", all, wait, err)
	}
}

// TestTrimService: of a Service's metadata, the cache keeps what identifies it and one annotation
// of bounded length.
func TestTrimService(t *testing.T) {
	s := newService()
	s.Namespace, s.Name, s.UID, s.ResourceVersion = "shop", "web", "1", "2"
	want := s.DeepCopy()
	want.Annotations = map[string]string{"topologyKeys": strings.Repeat("x", assign.MaxAnnotation)}
	s.Labels = map[string]string{"a": "b"}
	s.Annotations = map[string]string{"topologyKeys": strings.Repeat("x", 1<<20), "large": strings.Repeat("y", 1<<18)}
	s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	trimService(s)
	if s.String() != want.String() {
		t.Errorf("got %.200s with annotations of %d bytes", s.String(), len(s.Annotations["topologyKeys"]))
	}
}

// TestReleased: the controller is woken when an object stops naming a key, and by nothing else.
func TestReleased(t *testing.T) {
	closed := func(keys string) any {
		s := newService()
		s.Annotations = map[string]string{"topologyKeys": keys}
		return s
	}
	for _, test := range []struct {
		what          string
		before, after any
		woken         bool
	}{
		{"a key more", closed(`["a"]`), closed(`["a","b"]`), false},
		{"a key less", closed(`["a","b"]`), closed(`["a"]`), true},
		{"without the annotation", closed(`["a"]`), newService(), true},
		{"deleted", closed(`["a"]`), nil, true},
		{"an open Service is deleted", newService(), nil, false},
		{"what was deleted is not known", struct{}{}, nil, true},
	} {
		u, _, _ := newServiceUses()
		u.released(u.sources[0], test.before, test.after)
		if woken := len(u.wake) > 0; woken != test.woken {
			t.Errorf("%s: woken: %t, want %t", test.what, woken, test.woken)
		}
	}
}
