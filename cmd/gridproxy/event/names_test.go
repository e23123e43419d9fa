package event

import (
	"slices"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/dnsview"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// TestNextNames: what is wrong with a headless Service is reported once, as of a Service with
// rules, and by Next alone if it has rules. A name has no Event about a unit without endpoints.
func TestNextNames(t *testing.T) {
	service := func(clusterIP string, annotations map[string]string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "1", Annotations: annotations},
			Spec:       corev1.ServiceSpec{ClusterIP: clusterIP, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	headless := func(annotations map[string]string) *corev1.Service { return service(corev1.ClusterIPNone, annotations) }
	closed := headless(map[string]string{"topologyKeys": `["zone"]`})
	bad := headless(map[string]string{"topologyKeys": "zone"})
	const malformed = `MalformedTopology node n1: annotation topologyKeys is "zone", not a JSON list of label keys such as ["zone"]; until it is corrected, `
	const repeated = `IgnoredFields node n1: annotation topologyKeys names "zone" more than once; it counts once`
	for _, test := range []struct {
		name     string
		services []*corev1.Service // one after another; nil = no Service
		want     []string
	}{
		{"nothing is wrong", []*corev1.Service{nil, closed, headless(nil), nil}, nil},
		{"becomes malformed", []*corev1.Service{closed, bad, bad}, []string{malformed + "the last valid keys stay in force: zone"}},
		{"created malformed", []*corev1.Service{nil, bad, bad}, []string{malformed + "each node uses only its own endpoints"}},
		{"malformed at the start", []*corev1.Service{bad}, []string{"log " + malformed + "each node uses only its own endpoints"}},
		{"mended and broken again", []*corev1.Service{closed, bad, closed, bad},
			[]string{malformed + "the last valid keys stay in force: zone", malformed + "the last valid keys stay in force: zone"}},
		{"mistyped", []*corev1.Service{nil, headless(map[string]string{"topologykeys": "zone"})},
			[]string{"IgnoredFields node n1: annotation topologykeys is not read, so it does not close the Service; the one that is read is topologyKeys"}},
		{"a key twice", []*corev1.Service{closed, headless(map[string]string{"topologyKeys": `["zone", "zone"]`})}, []string{repeated}},
		{"two warnings", []*corev1.Service{closed, headless(map[string]string{"topologyKeys": `["zone", "zone"]`, "superedge.io/topologyPolicy": "Any"})},
			[]string{repeated + "; gridproxy explain --dns db.shop.svc prints 1 more"}},
		{"with a cluster IP", []*corev1.Service{nil, service("10.96.0.1", bad.Annotations)}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var said []string
			var memo topology.Memo
			var names topology.DNSMemo
			var state NamesState
			s := topology.Snapshot{Node: "n1", Nodes: map[string]labels.Set{"n1": {"zone": "x"}, "n2": {"zone": "x"}}}
			for _, svc := range test.services {
				if s.Services = nil; svc != nil {
					s.Services = []*corev1.Service{svc}
				}
				var events []Event
				state, events = NextNames(state, s, names.Resolve(s, topology.Config{}))
				s.LastKeys = memo.Resolve(s, topology.Config{}).LastKeys
				for _, e := range events {
					said = append(said, marked(e, e.Reason+" "+e.Message))
					if e.Service != svc {
						t.Errorf("%+v: the Event is about %v", e, e.Service)
					}
				}
			}
			if !slices.Equal(said, test.want) {
				t.Errorf("\n got %q\nwant %q", said, test.want)
			}
		})
	}
}

// TestUnnamedEndpoints: endpoints without names have one Event, whatever their number is, of a
// Service with and without a cluster IP. Next reports what else is wrong with the first one.
func TestUnnamedEndpoints(t *testing.T) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "1"}}
	s := topology.Snapshot{Node: "n1", Services: []*corev1.Service{svc}}
	for kind, want := range map[dnsview.Kind]string{
		dnsview.ClusterIP: "node n1: DNS has at most 50000 endpoints of one Service, the first by host name; further ones have no names",
		dnsview.Headless: "node n1: DNS has at most 50000 endpoints of one Service, the first by host name; further ones have no names; " +
			"gridproxy explain --dns db.shop.svc prints 1 more",
	} {
		var state NamesState
		var said []string
		for _, unnamed := range []int{0, 1, 2, 3} {
			names := &topology.DNSService{Unnamed: unnamed, Warnings: []string{"another warning"}}
			names.Service, names.Kind = types.NamespacedName{Namespace: "shop", Name: "db"}, kind
			v := topology.DNSView{Node: "n1", Services: []*topology.DNSService{names}}
			if unnamed == 0 {
				v.Services = nil
			}
			var events []Event
			state, events = NextNames(state, s, v)
			for _, e := range events {
				said = append(said, e.Message)
			}
		}
		if !slices.Equal(said, []string{want}) {
			t.Errorf("%s: %q, want %q", kind, said, want)
		}
	}
}
