package topology

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// TestNewSlice: what a Slice says of an EndpointSlice that says as little, and as much, as it may.
func TestNewSlice(t *testing.T) {
	s := sliceOf("web", "web-x7k2p")
	s.ResourceVersion = "7"
	s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-02T03:04:05.5Z"}
	s.Ports = []discoveryv1.EndpointPort{
		{Name: new(""), Port: new(int32(8080))},
		{Name: new("dns"), Port: new(int32(53)), Protocol: new(corev1.ProtocolUDP)},
		{Port: new(int32(80))}, // without a name
		{Name: new("any")},     // without a number
		{Name: new("x"), Port: new(int32(65536))},
	}
	s.Endpoints = []discoveryv1.Endpoint{
		{Addresses: []string{"10.0.0.1", "10.0.0.2"}},
		{NodeName: new("n0")},
		{Addresses: []string{"fd00::1"}, NodeName: new("n9")},
		{
			Addresses: []string{"10.0.0.03"}, NodeName: new("n1"),
			Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(true)},
			Hints: &discoveryv1.EndpointHints{
				ForZones: []discoveryv1.ForZone{{Name: "za"}, {Name: "zb"}}, ForNodes: []discoveryv1.ForNode{{Name: "n1"}},
			},
		},
		{Addresses: []string{"10.0.0.4"}, Hints: &discoveryv1.EndpointHints{}},
	}
	want := &Slice{
		Namespace: "default", Name: "web-x7k2p", ResourceVersion: "7", Service: "web",
		Triggered: time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC),
		Ports:     []SlicePort{{"", corev1.ProtocolTCP, 8080}, {"dns", corev1.ProtocolUDP, 53}},
		Endpoints: []SliceEndpoint{
			{Addr: netip.MustParseAddr("10.0.0.1"), Ready: true, Serving: true},
			{Addr: netip.MustParseAddr("10.0.0.3"), Node: "n1", Terminating: true, Hints: &SliceHints{Zones: []string{"za", "zb"}, Nodes: []string{"n1"}}},
			{Addr: netip.MustParseAddr("10.0.0.4"), Ready: true, Serving: true},
		},
	}
	got := NewSlice(s)
	exact := cmp.Options{
		cmp.Transformer("fields", func(s *Slice) Slice { return *s }), // its method Equal ignores the resource version
		cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreUnexported(Slice{}),
	}
	if diff := cmp.Diff(want, got, exact); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if first := got.FirstNode(); first != "n0" {
		t.Errorf("the first node is %q, want n0, although its endpoint is left out", first)
	}
	if warnings := sliceWarnings([]*Slice{got, got}); len(warnings) != 2 || !strings.HasSuffix(warnings[0], "it and 1 more are ignored") {
		t.Errorf("warnings %q, want one of two ports and one of two addresses", warnings)
	}
}

// TestSliceWithoutService: no proxy uses a slice that names no Service, is marked as headless, or
// holds host names.
func TestSliceWithoutService(t *testing.T) {
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"no label":   func(s *discoveryv1.EndpointSlice) { s.Labels = nil },
		"headless":   func(s *discoveryv1.EndpointSlice) { s.Labels[LabelHeadless] = "" },
		"host names": func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeFQDN },
	} {
		s := sliceOf("web", "web-1", "10.0.0.1")
		change(s)
		if got := NewSlice(s).Service; got != "" {
			t.Errorf("%s: Service %q, want none", name, got)
		}
	}
}

// TestSliceEqual: Slices of one EndpointSlice are equal until something differs that is read. The
// daemon keeps the old one then, so what Equal misses would never take effect.
func TestSliceEqual(t *testing.T) {
	object := func() *discoveryv1.EndpointSlice {
		s := sliceOf("kubernetes", "kubernetes", "192.168.0.1@n1")
		s.Annotations = map[string]string{AnnotationLocalEndpoint: "127.0.0.1", AnnotationLocalPort: "51003"}
		s.Endpoints[0].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "za"}}, ForNodes: []discoveryv1.ForNode{{Name: "n1"}}}
		return s
	}
	for name, test := range map[string]struct {
		change func(*discoveryv1.EndpointSlice)
		equal  bool
	}{
		"nothing":          {func(*discoveryv1.EndpointSlice) {}, true},
		"resource version": {func(s *discoveryv1.EndpointSlice) { s.ResourceVersion = "8" }, true},
		"another label":    {func(s *discoveryv1.EndpointSlice) { s.Labels["app"] = "x" }, true},
		"zone":             {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Zone = new("za") }, true},
		"said and assumed": {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = new(true) }, true},

		"Service":  {func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "b" }, false},
		"headless": {func(s *discoveryv1.EndpointSlice) { s.Labels[LabelHeadless] = "" }, false},
		"trigger": {func(s *discoveryv1.EndpointSlice) {
			s.Annotations[corev1.EndpointsLastChangeTriggerTime] = "2026-01-02T03:04:05Z"
		}, false},
		"local endpoint":   {func(s *discoveryv1.EndpointSlice) { s.Annotations[AnnotationLocalEndpoint] = "127.0.0.2" }, false},
		"local port":       {func(s *discoveryv1.EndpointSlice) { s.Annotations[AnnotationLocalPort] = "51004" }, false},
		"address":          {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "192.168.0.2" }, false},
		"node":             {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].NodeName = new("n2") }, false},
		"no node":          {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].NodeName = nil }, false},
		"ready":            {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = new(false) }, false},
		"serving":          {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Serving = new(false) }, false},
		"terminating":      {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Terminating = new(true) }, false},
		"hint for a zone":  {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Hints.ForZones[0].Name = "zb" }, false},
		"hint for a node":  {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Hints.ForNodes[0].Name = "n2" }, false},
		"no hints":         {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Hints = nil }, false},
		"port":             {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(81)) }, false},
		"port name":        {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = new("x") }, false},
		"protocol":         {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Protocol = new(corev1.ProtocolUDP) }, false},
		"ignored port":     {func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(0)) }, false},
		"ignored address":  {func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses[0] = "x" }, false},
		"an endpoint more": {func(s *discoveryv1.EndpointSlice) { s.Endpoints = append(s.Endpoints, s.Endpoints[0]) }, false},
	} {
		other := object()
		test.change(other)
		if got := NewSlice(object()).Equal(NewSlice(other)); got != test.equal {
			t.Errorf("%s: Equal is %t, want %t", name, got, test.equal)
		}
	}
}
