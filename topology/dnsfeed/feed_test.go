package dnsfeed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/topology/dnsview"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var equalViews = gocmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.EquateEmpty()}

func anyView(t *rapid.T) dnsview.View {
	v := dnsview.View{Node: "bj-3", Namespaces: anyNames(t, "namespaces")}
	for _, name := range anyNames(t, "services") {
		v.Services = append(v.Services, anyService(t, types.NamespacedName{Namespace: "default", Name: name}))
	}
	return v
}

func anyNames(t *rapid.T, label string) []string {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 0, 6, rapid.ID).Draw(t, label)
	slices.Sort(names)
	return names
}

func anyService(t *rapid.T, name types.NamespacedName) *dnsview.Names {
	svc := &dnsview.Names{
		Service:      name,
		Kind:         rapid.SampledFrom([]dnsview.Kind{dnsview.ClusterIP, dnsview.Headless, dnsview.ExternalName}).Draw(t, "kind"),
		ExternalName: rapid.SampledFrom([]string{"", "example.com"}).Draw(t, "external name"),
		Ports:        anyPorts(t),
	}
	for range rapid.IntRange(0, 2).Draw(t, "cluster IPs") {
		svc.ClusterIPs = append(svc.ClusterIPs, anyAddr(t))
	}
	endpoints := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40, 50}).Draw(t, "endpoints")
	addMembers(svc, endpoints, rapid.IntRange(0, 14).Draw(t, "aliases"), anyPorts(t), anyPorts(t))
	return svc
}

// addMembers adds endpoints, three with the same ports one after the other, and aliases.
func addMembers(svc *dnsview.Names, endpoints, aliases int, sets ...[]dnsview.Port) {
	for i := range endpoints {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{
			Hostname: fmt.Sprintf("web-%d", i), Addr: addr, Node: []string{"", "bj-3"}[i%2], Ports: sets[i/3%len(sets)],
		})
	}
	for i := range aliases {
		svc.Aliases = append(svc.Aliases, dnsview.Alias{Alias: fmt.Sprintf("grid-%d", i), Hostname: fmt.Sprintf("web-%d", i)})
	}
}

func headless(name string) *dnsview.Names {
	return &dnsview.Names{Service: types.NamespacedName{Namespace: "default", Name: name}, Kind: dnsview.Headless}
}

func anyAddr(t *rapid.T) netip.Addr {
	return rapid.SampledFrom([]netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::1")}).Draw(t, "address")
}

func anyPorts(t *rapid.T) (all []dnsview.Port) {
	for range rapid.IntRange(0, 2).Draw(t, "ports") {
		all = append(all, dnsview.Port{
			Name: rapid.SampledFrom([]string{"", "http"}).Draw(t, "port"), Protocol: "UDP", Number: rapid.Int32Range(-1, 65535).Draw(t, "number"),
		})
	}
	return all
}

func written(t rapid.TB, write func(*Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(NewWriter(&out)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// known is what a reader knows after an update. grid-dns has an index of it instead of a list.
func known(v dnsview.View, u Update) dnsview.View {
	if u.NewNamespaces {
		v.Namespaces = u.Namespaces
	}
	if u.Whole {
		v.Services = nil
	}
	changed := func(svc *dnsview.Names) bool {
		same := func(now *dnsview.Names) bool { return now.Service == svc.Service }
		return slices.Contains(u.Removed, svc.Service) || slices.ContainsFunc(u.Services, same)
	}
	v.Services = append(slices.DeleteFunc(slices.Clone(v.Services), changed), u.Services...)
	slices.SortFunc(v.Services, dnsview.Compare)
	return v
}

// TestRoundTrip: the other side has the same view after every update.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := anyView(t), anyView(t)
		if len(before.Services) > 0 && rapid.Bool().Draw(t, "one stays") {
			after.Services = slices.DeleteFunc(after.Services, func(svc *dnsview.Names) bool { return svc.Service == before.Services[0].Service })
			after.Services = append(after.Services, before.Services[0])
			slices.SortFunc(after.Services, dnsview.Compare)
		}
		checkRoundTrip(t, before, after)
	})
}

// TestRoundTripOfManyFrames: a Service with 9,000 endpoints and aliases arrives whole.
func TestRoundTripOfManyFrames(t *testing.T) {
	large, small := headless("a"), headless("b")
	addMembers(large, 9000, 9000, nil, []dnsview.Port{{Name: "http", Protocol: "TCP", Number: 80}})
	addMembers(small, 1, 1, nil)
	checkRoundTrip(t, dnsview.View{Node: "bj-3", Services: []*dnsview.Names{small}}, dnsview.View{Node: "bj-3", Services: []*dnsview.Names{large, small}})
}

// checkRoundTrip writes a view and the update to another one, and compares what a reader knows
// after each.
func checkRoundTrip(t rapid.TB, before, after dnsview.View) {
	t.Helper()
	text := written(t, func(w *Writer) error {
		return errors.Join(w.Hello(Hello{Node: "bj-3", Domain: "cluster.local"}), w.Update(WholeOf(before)), w.Update(Between(before, after)))
	})
	r := NewReader(bytes.NewReader(text))
	if h, err := r.Hello(); err != nil || h != (Hello{Version: Version, Node: "bj-3", Domain: "cluster.local"}) {
		t.Fatalf("greeting %+v, %v", h, err)
	}
	got := dnsview.View{Node: "bj-3"}
	for _, want := range []dnsview.View{before, after} {
		u, err := r.Update()
		if err != nil {
			t.Fatal(err)
		}
		got = known(got, u)
		if diff := gocmp.Diff(want, got, equalViews); diff != "" {
			t.Fatalf("after an update (-want, +got):\n%s", diff)
		}
	}
	if _, err := r.Update(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last update: %v", err)
	}
}

// TestOnlyWhatChanged: an update has what changed, and nothing else.
func TestOnlyWhatChanged(t *testing.T) {
	a, b, c, d := headless("a"), headless("b"), headless("c"), headless("d")
	before := dnsview.View{Services: []*dnsview.Names{a, b, c}, Namespaces: []string{"default"}}
	if u := Between(before, before); !u.Empty() {
		t.Errorf("nothing changed, and the update is %+v", u)
	}
	changed := headless("b")
	u := Between(before, dnsview.View{Services: []*dnsview.Names{a, changed, d}, Namespaces: []string{"default"}})
	if !slices.Equal(u.Services, []*dnsview.Names{changed, d}) || !slices.Equal(u.Removed, []types.NamespacedName{c.Service}) || u.NewNamespaces {
		t.Errorf("the update is %+v", u)
	}
}

// TestTruncated: an update that is cut off at any byte does not count.
func TestTruncated(t *testing.T) {
	view := dnsview.View{Services: []*dnsview.Names{{
		Service: types.NamespacedName{Namespace: "default", Name: "db"}, Kind: dnsview.Headless,
		Endpoints: []dnsview.Endpoint{{Hostname: "db-0", Addr: netip.MustParseAddr("10.0.0.1")}},
	}}, Namespaces: []string{"default"}}
	text := written(t, func(w *Writer) error { return w.Update(WholeOf(view)) })
	for n := range text {
		if u, err := NewReader(bytes.NewReader(text[:n])).Update(); err == nil {
			t.Fatalf("%d of %d bytes are an update: %+v", n, len(text), u)
		}
	}
}

// TestMalformed: what is out of place ends the feed with an error that says so.
func TestMalformed(t *testing.T) {
	svc := func(name string) *dnsview.Names {
		return &dnsview.Names{Service: types.NamespacedName{Namespace: "default", Name: name}}
	}
	part := wireService{Name: wireName{"default", "a"}, More: true}
	endpoint := wireService{Name: wireName{"default", "a"}, Endpoints: []wireEndpoint{{Addr: netip.MustParseAddr("10.0.0.1"), Ports: 3}}}
	for name, text := range map[string][]byte{
		"out of order":      written(t, func(w *Writer) error { return w.Update(Update{Services: []*dnsview.Names{svc("b"), svc("a")}}) }),
		"a part is missing": written(t, func(w *Writer) error { w.write(kindService, part); return w.Update(Update{}) }),
		"another Service": written(t, func(w *Writer) error {
			w.write(kindService, part)
			return w.Update(Update{Services: []*dnsview.Names{svc("b")}})
		}),
		"no such ports":      written(t, func(w *Writer) error { w.write(kindService, endpoint); return w.err }),
		"a second greeting":  written(t, func(w *Writer) error { return w.Hello(Hello{}) }),
		"no CBOR":            {0, 0, 0, 2, byte(kindService), 0xff},
		"an empty frame":     {0, 0, 0, 0, 1},
		"a frame of 4 GiB":   {0xff, 0xff, 0xff, 0xff, byte(kindService), 0},
		"another kind of it": {0, 0, 0, 2, byte(kindService), 0x01},
	} {
		if u, err := NewReader(bytes.NewReader(text)).Update(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
	later := written(t, func(w *Writer) error { w.write(kindHello, Hello{Version: Version + 1}); return w.err })
	if _, err := NewReader(bytes.NewReader(later)).Hello(); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
	if err := NewWriter(io.Discard).Update(Update{Services: []*dnsview.Names{{ExternalName: strings.Repeat("a", MaxFrame)}}}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a Service that fits into no frame: %v", err)
	}
}

// TestManyPorts: as many ports as an API server takes, and endpoints that alternate between sets of
// them, fit into frames.
func TestManyPorts(t *testing.T) {
	sets := make([][]dnsview.Port, 3)
	for i := range sets {
		for n := range 20_000 {
			sets[i] = append(sets[i], dnsview.Port{Name: fmt.Sprintf("%s-%d-%d", strings.Repeat("p", 50), i, n), Protocol: "TCP", Number: int32(n)})
		}
	}
	svc := headless("hostile")
	svc.Ports = sets[0]
	for i := range 30 { // each takes a frame of its own
		addr := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{Hostname: fmt.Sprintf("web-%d", i), Addr: addr, Ports: sets[i%3]})
	}
	text := written(t, func(w *Writer) error { return w.Update(Update{Services: []*dnsview.Names{svc, headless("web")}}) })
	u, err := NewReader(bytes.NewReader(text)).Update()
	if err != nil || len(u.Services) != 2 || len(u.Services[0].Endpoints) != len(svc.Endpoints) || len(u.Services[0].Endpoints[7].Ports) != portsMax {
		t.Fatalf("%d Services, %v", len(u.Services), err)
	}
	for i, e := range u.Services[0].Endpoints {
		if e.Hostname != svc.Endpoints[i].Hostname || e.Ports[0] != svc.Endpoints[i].Ports[0] {
			t.Fatalf("endpoint %d is %s with %v", i, e.Hostname, e.Ports[0])
		}
	}
}

// TestLaterKinds: a frame of an unknown kind is skipped.
func TestLaterKinds(t *testing.T) {
	text := written(t, func(w *Writer) error {
		w.write(kind(99), Hello{})
		return w.Update(Update{Generation: 7})
	})
	if u, err := NewReader(bytes.NewReader(text)).Update(); err != nil || u.Generation != 7 {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestReports: the daemon hears what a DNS server reports.
func TestReports(t *testing.T) {
	want := Report{Generation: 3, Serving: []netip.AddrPort{netip.MustParseAddrPort("169.254.20.12:53")}, Answered: []Answered{{UDP: 1 << 40, TCP: 7}}}
	text := written(t, func(w *Writer) error { return w.Report(want) })
	got, err := NewReader(bytes.NewReader(text)).Report()
	if diff := gocmp.Diff(want, got, equalViews); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestFile: a file is read as it was written, and not at all with any bit of it changed or missing.
func TestFile(t *testing.T) {
	want := dnsview.View{Node: "bj-3", Namespaces: []string{"default"}, Services: []*dnsview.Names{{
		Service: types.NamespacedName{Namespace: "default", Name: "db"}, Kind: dnsview.Headless,
		Endpoints: []dnsview.Endpoint{{Hostname: "db-0", Addr: netip.MustParseAddr("10.0.0.1")}},
	}}}
	var out bytes.Buffer
	if err := WriteFile(&out, Hello{Node: "bj-3", Domain: "cluster.local"}, want); err != nil {
		t.Fatal(err)
	}
	file := out.Bytes()
	h, got, err := ReadFile(file)
	if diff := gocmp.Diff(want, got, equalViews); err != nil || diff != "" || h.Domain != "cluster.local" {
		t.Fatalf("%+v, %v\n%s", h, err, diff)
	}
	for i := range file {
		if _, _, err := ReadFile(file[:i]); err == nil {
			t.Fatalf("%d of %d bytes were read", i, len(file))
		}
		for bit := range 8 {
			file[i] ^= 1 << bit
			if _, _, err := ReadFile(file); err == nil {
				t.Fatalf("bit %d of byte %d is another one, and it was read", bit, i)
			}
			file[i] ^= 1 << bit
		}
	}
}

// FuzzReader: nothing that arrives ends the process, and what is read can be written again.
func FuzzReader(f *testing.F) {
	f.Add(written(f, func(w *Writer) error {
		return errors.Join(w.Hello(Hello{Node: "bj-3"}), w.Update(WholeOf(dnsview.View{Namespaces: []string{"default"}})), w.Report(Report{Generation: 1}))
	}))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := NewReader(bytes.NewReader(text))
		_, _ = r.Hello()
		for {
			u, err := r.Update()
			if err != nil {
				break
			}
			if err := NewWriter(io.Discard).Update(u); err != nil {
				t.Fatalf("an update that was read cannot be written: %v", err)
			}
		}
		_, _ = NewReader(bytes.NewReader(text)).Report()
		_, _, _ = ReadFile(text)
	})
}

// BenchmarkWhole is the first update of 10,000 Services with 10 endpoints each.
func BenchmarkWhole(b *testing.B) {
	var view dnsview.View
	for i := range 10_000 {
		svc := &dnsview.Names{Service: types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("web-%05d", i)}, Kind: dnsview.ClusterIP}
		for j := range 10 {
			svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{
				Hostname: fmt.Sprintf("10-%d-%d-%d", i>>8, i&255, j), Addr: netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(j)}), Node: "bj-3",
			})
		}
		view.Services = append(view.Services, svc)
	}
	var out bytes.Buffer
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			out.Reset()
			if err := NewWriter(&out).Update(WholeOf(view)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(out.Len())/1e6, "MB")
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := NewReader(bytes.NewReader(out.Bytes())).Update(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
