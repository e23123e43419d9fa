package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/object"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func file(t rapid.TB, s topology.Snapshot) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Encode(&out, s, at); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// trimmed is a Snapshot as a source has it.
func trimmed(s topology.Snapshot) topology.Snapshot {
	trim := new(object.Trimmer)
	services := make([]*corev1.Service, len(s.Services))
	for i, svc := range s.Services {
		services[i] = trim.Service(svc)
	}
	s.Services = services
	kept := make([]*topology.Slice, len(s.Slices))
	for i, slice := range s.Slices {
		if kept[i] = slice; slice.Service == "" { // NewSlice reads nothing else of it
			kept[i] = &topology.Slice{Namespace: slice.Namespace, Name: slice.Name, Triggered: slice.Triggered}
		}
	}
	s.Slices = kept
	if s.Self != nil {
		s.Self = trim.Node(s.Self)
	}
	return s
}

// comparison is that of Snapshots and Views. What a Slice left out is not kept, and Drops is a
// func.
func comparison() cmp.Options {
	type fields topology.Slice // without the method Equal
	return cmp.Options{
		cmp.Transformer("fields", func(s *topology.Slice) fields { return fields(*s) }), cmpopts.IgnoreUnexported(fields{}),
		cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}),
		cmpopts.IgnoreFields(topology.View{}, "Drops"),
	}
}

// view is what a Snapshot decides on a machine.
func view(s topology.Snapshot) topology.View {
	s.Host = topology.Host{IPv4: true, IPv6: true, Addrs: []netip.Addr{netip.MustParseAddr("192.168.10.1")}}
	return topology.Resolve(s, topology.Config{})
}

// TestRoundTrip: what is read decides what was decided before, and is the same to Encode.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := trimmed(topologytest.Snapshot(t))
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			s = trimmed(topologytest.Change(t, s))
		}
		written := file(t, s)
		read, err := Decode(written)
		if err != nil {
			t.Fatal(err)
		}
		if read.Node != s.Node || !read.Time.Equal(at) {
			t.Fatalf("header %+v", read.Header)
		}
		s.Host, s.APIProxies, s.Saved = topology.Host{}, nil, at
		if diff := cmp.Diff(s, read.Snapshot, comparison()); diff != "" {
			t.Fatalf("objects (-written +read):\n%s", diff)
		}
		before, after := view(s), view(read.Snapshot)
		if diff := cmp.Diff(before, after, comparison()); diff != "" {
			t.Fatalf("decisions (-before +after):\n%s", diff)
		}
		again := file(t, read.Snapshot)
		if read, err = Decode(again); err != nil || !bytes.Equal(file(t, read.Snapshot), again) {
			t.Fatalf("what was read has other bytes: %v", err)
		}
	})
}

// TestRoundTripOfNames is TestRoundTrip of what only DNS reads. A reader of before it, which skips
// the frame, decides the same about rules.
func TestRoundTripOfNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := topologytest.WithNames(t)
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			drawn = drawn.Change(t)
		}
		s := drawn.Snapshot
		trim := new(object.Trimmer)
		s.Services = nil
		for _, svc := range drawn.Services {
			s.Services = append(s.Services, trim.Service(svc))
		}
		written := file(t, s)
		read, err := Decode(written)
		if err != nil {
			t.Fatal(err)
		}
		before, after := topology.ResolveDNS(s, topology.Config{}), topology.ResolveDNS(read.Snapshot, topology.Config{})
		unsaid := cmpopts.IgnoreFields(topology.DNSService{}, "Warnings") // of what a Slice left out
		if diff := cmp.Diff(before, after, comparison(), unsaid); diff != "" {
			t.Fatalf("names (-before +after):\n%s", diff)
		}
		if !slices.Equal(s.Namespaces, read.Snapshot.Namespaces) || !slices.Equal(s.Grids, read.Snapshot.Grids) {
			t.Fatalf("read Namespaces %v and Grids %v", read.Snapshot.Namespaces, read.Snapshot.Grids)
		}
		if again := file(t, read.Snapshot); !bytes.Equal(again, written) {
			t.Fatal("what was read has other bytes")
		}
		s.Namespaces = nil // no frame of names
		if read, err = Decode(file(t, s)); err != nil {
			t.Fatal(err)
		}
		warned := cmpopts.IgnoreFields(topology.ServicePort{}, "Warnings", "Slices")
		if diff := cmp.Diff(view(s), view(read.Snapshot), comparison(), warned); diff != "" {
			t.Fatalf("rules of a reader without names (-before +after):\n%s", diff)
		}
	})
}

// TestSameNeedsAll: other names and another version of this Node are written again.
func TestSameNeedsAll(t *testing.T) {
	a := small()
	for name, change := range map[string]func(*topology.Snapshot){
		"names enabled": func(s *topology.Snapshot) { s.Namespaces = []string{} },
		"Grid":          func(s *topology.Snapshot) { s.Grids = []types.NamespacedName{{Name: "db"}} },
		"own Node":      func(s *topology.Snapshot) { s.Self = s.Self.DeepCopy() },
	} {
		b := a
		change(&b)
		if Same(a, b) {
			t.Errorf("%s: the Snapshots are the same", name)
		}
	}
}

// small is a cluster whose file is short, with the fields that random Snapshots lack.
func small() topology.Snapshot {
	hinted := topology.NewSlice(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "kubernetes", ResourceVersion: "99",
			Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
			Annotations: map[string]string{
				corev1.EndpointsLastChangeTriggerTime: at.Format(time.RFC3339Nano),
				topology.AnnotationLocalEndpoint:      "169.254.20.11", topology.AnnotationLocalPort: "51003",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(6443)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"192.0.2.1"}, NodeName: new("bj-1"),
			Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)},
			Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}, ForNodes: []discoveryv1.ForNode{{Name: "n"}}},
		}},
	})
	return topology.Snapshot{
		Node:     "bj-1",
		Self:     &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-1", ResourceVersion: "7"}},
		Nodes:    map[string]labels.Set{"bj-1": {"location": "beijing"}},
		Services: []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", ResourceVersion: "100"}}},
		Slices:   []*topology.Slice{hinted},
		Watched:  map[string]bool{},
	}
}

func TestEveryFieldOfASlice(t *testing.T) {
	s := small()
	read, err := Decode(file(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if want, got := s.Slices[0], read.Snapshot.Slices[0]; !want.Equal(got) || got.ResourceVersion != "99" {
		t.Errorf("slice %+v, want %+v", got, want)
	}
	if want := map[string]string{"services": "100", "endpointslices": "99", "node": "7"}; !maps.Equal(read.Versions, want) {
		t.Errorf("resource versions %v, want %v", read.Versions, want)
	}
	if read.Snapshot.Watched == nil {
		t.Error("a Snapshot that may lack Nodes is read as one that lacks none")
	}
}

// TestDamage: a file that is truncated anywhere or has another bit anywhere is not read.
func TestDamage(t *testing.T) {
	good := file(t, small())
	for length := range good {
		if _, err := Decode(good[:length]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("truncated to %d of %d bytes: %v", length, len(good), err)
		}
	}
	for i := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			if _, err := Decode(bad); !errors.Is(err, ErrDamaged) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
	if _, err := Decode(append(bytes.Clone(good), good...)); !errors.Is(err, ErrDamaged) {
		t.Errorf("two files in one: %v", err)
	}
}

// sealed gives content a right length and checksum.
func sealed(content []byte) []byte {
	out := binary.BigEndian.AppendUint64(bytes.Clone(content), uint64(len(content)))
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

func TestOtherVersion(t *testing.T) {
	content := file(t, small())
	content = content[:len(content)-footerLength]
	binary.BigEndian.PutUint32(content[len(magic):], Version+1)
	if _, err := Decode(sealed(content)); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "it is 2, this program reads 1") {
		t.Errorf("%v", err)
	}
}

// TestKindsAreAdded: a frame of an unknown kind is skipped; a body without the last frame is not
// whole.
func TestKindsAreAdded(t *testing.T) {
	body := func(write func(*frames)) []byte {
		var all bytes.Buffer
		out := &summed{to: &all, sum: sha256.New(), limit: MaxFile}
		out.lead([]byte(`{"node":"a","time":"2026-01-02T03:04:05Z","new":1}`))
		if err := compressed(out, func(to io.Writer) error {
			f := &frames{to: to}
			write(f)
			return f.err
		}); err != nil {
			t.Fatal(err)
		}
		return sealed(all.Bytes())
	}
	read, err := Decode(body(func(f *frames) {
		f.write(200, []byte("of a later release"))
		f.object(kindService, small().Services[0])
		f.write(kindDetails, []byte(`{"watched":null}`))
	}))
	if err != nil || len(read.Snapshot.Services) != 1 || read.Snapshot.Watched != nil {
		t.Errorf("%v %+v", err, read)
	}
	for name, write := range map[string]func(*frames){
		"no details": func(f *frames) { f.object(kindService, small().Services[0]) },
		"no protobuf": func(f *frames) {
			f.write(kindService, []byte{255})
			f.write(kindDetails, []byte(`{}`))
		},
		"no JSON": func(f *frames) { f.write(kindDetails, []byte(`{`)) },
	} {
		if _, err := Decode(body(write)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLimits: a file does not grow beyond its limit, and a frame takes no memory that it does not
// fill.
func TestLimits(t *testing.T) {
	whole := len(file(t, small()))
	for limit := range whole {
		var out bytes.Buffer
		err := encodeWithin(&summed{to: &out, sum: sha256.New(), limit: int64(limit)}, small(), at)
		if fits := limit >= whole; !fits && !errors.Is(err, ErrTooLarge) {
			t.Fatalf("limit %d of %d: %v", limit, whole, err)
		}
	}
	claims := []byte{byte(kindService), 0x1f, 0xff, 0xff, 0xff} // 512 MiB that are not there
	if got := testing.AllocsPerRun(1, func() {
		if err := readFrames(bytes.NewReader(claims), nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("a frame that does not end: %v", err)
		}
	}); got > 50 {
		t.Errorf("%v allocations", got)
	}
}

// TestSame: Same differs exactly when a decision may differ, and not for another copy of a map.
func TestSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := topologytest.Snapshot(t)
		b := a
		b.Nodes, b.LastKeys = maps.Clone(a.Nodes), maps.Clone(a.LastKeys)
		if !Same(a, b) {
			t.Fatal("a copy differs")
		}
		b = topologytest.Change(t, a)
		if cmp.Equal(view(a), view(b), comparison()) {
			return
		}
		if Same(a, b) {
			t.Fatal("Snapshots that decide differently are the same")
		}
	})
}

// FuzzDecode reads a body that nothing wrote: it is an error or a Snapshot that can be resolved.
func FuzzDecode(f *testing.F) {
	content := file(f, small())
	f.Add(content[:len(content)-footerLength])
	f.Fuzz(func(t *testing.T, content []byte) {
		read, err := Decode(sealed(content))
		switch {
		case err == nil:
			view(read.Snapshot)
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion):
			t.Errorf("%v", err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	s := topologytest.Large{Services: 5000, Endpoints: 10, Nodes: 100}.Snapshot()
	for b.Loop() {
		if err := Encode(io.Discard, s, at); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(file(b, s))), "file-bytes")
}

func BenchmarkDecode(b *testing.B) {
	content := file(b, topologytest.Large{Services: 5000, Endpoints: 10, Nodes: 100}.Snapshot())
	for b.Loop() {
		if _, err := Decode(content); err != nil {
			b.Fatal(err)
		}
	}
}
