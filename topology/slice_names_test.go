package topology

import (
	"net/netip"
	"strings"
	"testing"
	"unsafe"

	"gridproxy/topology/dnsview"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestNamesTakeNoMemory: without names a Slice is in the same size class of the allocator as
// before there were any, and an endpoint is no larger.
func TestNamesTakeNoMemory(t *testing.T) {
	if size := unsafe.Sizeof(Slice{}); size > 160 { // the classes around it: 144, 160, 176
		t.Errorf("a Slice has %d bytes, want at most 160", size)
	}
	if size := unsafe.Sizeof(SliceEndpoint{}); size != 56 {
		t.Errorf("a SliceEndpoint has %d bytes, want 56", size)
	}
	for _, label := range []string{LabelHeadless, "app"} {
		s := sliceOf("web", "web-1", "10.0.0.1@n1")
		s.Labels[label], s.Endpoints[0].Hostname = "", new("db-0")
		got := NewSlice(s)
		if got.names != nil || label == LabelHeadless && (got.Ports != nil || got.Endpoints != nil) {
			t.Errorf("label %s: without names a Slice holds %+v", label, got)
		}
	}
}

// named is a slice with everything that only DNS reads.
func named(service string) *discoveryv1.EndpointSlice {
	s := sliceOf(service, service+"-1", "10.0.0.1@n1", "10.0.0.3@n2", "10.0.0.4@n2")
	s.Ports = []discoveryv1.EndpointPort{
		{Name: new("http"), Port: new(int32(80))}, {Port: new(int32(81))}, {Name: new("any"), Protocol: new(corev1.ProtocolUDP)}, {Port: new(int32(0))},
	}
	s.Endpoints[0].Addresses = append(s.Endpoints[0].Addresses, "10.0.0.2", "fd00::1")
	s.Endpoints[1].Hostname = new("DB-0")
	s.Endpoints[2].Hostname = new("not a label")
	return s
}

func TestNewSliceWithNames(t *testing.T) {
	exact := cmp.Options{cmp.AllowUnexported(sliceNames{}, furtherAddress{}, ignoredNames{}, ignored{}), cmpopts.EquateComparable(netip.Addr{})}
	s := named("db")
	got := NewSliceWithNames(s)
	want := sliceNames{
		service: "db", hostnames: []string{"", "db-0", ""}, further: []furtherAddress{{0, netip.MustParseAddr("10.0.0.2")}},
		ports: []dnsview.Port{{Protocol: "TCP", Number: 81}, {Name: "any", Protocol: "UDP", Number: dnsview.NoPort}},
	}
	exceptIgnored := *got.names
	exceptIgnored.ignored = ignoredNames{}
	if diff := cmp.Diff(want, exceptIgnored, exact); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if n := got.names.ignored; n.hostnames.count != 1 || n.addresses.count != 1 {
		t.Errorf("ignored %+v, want one host name and one address", n)
	}
	s.Labels[LabelHeadless] = ""
	headless := NewSliceWithNames(s)
	if headless.Service != "" || len(headless.Endpoints) != 3 || len(headless.Ports) != 1 {
		t.Errorf("the headless slice is read as %+v", headless)
	}
	if of, counts := labelledService(headless); !counts || of != (types.NamespacedName{Namespace: s.Namespace, Name: "db"}) {
		t.Errorf("its names are those of %v", of)
	}
	long := sliceOf("db", "db-1", "10.0.0.1")
	long.Endpoints[0].Hostname = new(strings.Repeat("a", 64))
	if n := NewSliceWithNames(long).names; n.hostname(0) != "" || n.ignored.hostnames.count != 1 {
		t.Errorf("a host name of 64 bytes: %+v", n)
	}
	hosts := sliceOf("db", "db-1")
	hosts.AddressType, hosts.Endpoints = discoveryv1.AddressTypeFQDN, []discoveryv1.Endpoint{{Addresses: []string{"a.example"}}}
	if s := NewSliceWithNames(hosts); len(s.Endpoints) != 0 || s.names.ignored.slices.count != 1 {
		t.Errorf("a slice of host names: %+v", s)
	}
}

// TestNamesRoundTrip: Object says what NewSliceWithNames read.
func TestNamesRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"ordinary":   func(*discoveryv1.EndpointSlice) {},
		"headless":   func(s *discoveryv1.EndpointSlice) { s.Labels[LabelHeadless] = "" },
		"no Service": func(s *discoveryv1.EndpointSlice) { s.Labels = nil },
		"host names": func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeFQDN },
	} {
		s := named("db")
		change(s)
		want := NewSliceWithNames(s)
		got := NewSliceWithNames(want.Object())
		want.ignored, want.names.ignored = nil, ignoredNames{} // which Object does not know
		if !want.Equal(got) {
			t.Errorf("%s: %+v %+v, want %+v %+v", name, got, got.names, want, want.names)
		}
	}
}

// TestNamesAreCompared: a Slice with another name is another one.
func TestNamesAreCompared(t *testing.T) {
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"host name":       func(s *discoveryv1.EndpointSlice) { s.Endpoints[1].Hostname = new("db-1") },
		"further address": func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[1] = "10.0.0.9" },
		"port":            func(s *discoveryv1.EndpointSlice) { s.Ports[1].Port = new(int32(82)) },
		"ignored":         func(s *discoveryv1.EndpointSlice) { s.Endpoints[2].Hostname = new("nor this") },
	} {
		s := named("db")
		change(s)
		if NewSliceWithNames(s).Equal(NewSliceWithNames(named("db"))) {
			t.Errorf("%s: the Slices are equal", name)
		}
	}
}
