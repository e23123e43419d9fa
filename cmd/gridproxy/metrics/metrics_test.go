package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func newTest(t *testing.T, start time.Time) (*Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	return New(registry, start, Kernel{
		Rules:   func() []RuleCount { return []RuleCount{{"nat", "IPv4", 12}} },
		Packets: func() (uint64, uint64) { return 3, 4 },
	}), registry
}

// expect compares the named metrics, written in Prometheus' text format without comments.
func expect(t *testing.T, registry *prometheus.Registry, want string) {
	t.Helper()
	names := map[string]bool{}
	for line := range strings.Lines(want) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		names[name] = true
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		if !names[f.GetName()] {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value != 0 {
				got = append(got, strings.Join(slices.Concat([]string{f.GetName()}, labels, []string{fmt.Sprint(value)}), " "))
			}
		}
	}
	if g, w := strings.Join(got, "\n"), strings.TrimSpace(want); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func slice(name, trigger string) *topology.Slice {
	return topology.NewSlice(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: trigger},
	}})
}

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func TestChangesPendUntilARunSucceeds(t *testing.T) {
	m, registry := newTest(t, time.Now())
	a, b, b2 := service("a"), service("b"), service("b")
	s := slice("a-1", "")
	run := func(err error, services []*corev1.Service, slices ...*topology.Slice) {
		m.Synced(syncer.Result{Err: err, Snapshot: topology.Snapshot{Services: services, Slices: slices}})
	}
	run(nil, []*corev1.Service{a, b}, s)
	run(errors.New("refused"), []*corev1.Service{a, b2})
	run(errors.New("refused"), []*corev1.Service{b2})
	expect(t, registry, `
gridproxy_sync_proxy_rules_endpoint_changes_pending 1
gridproxy_sync_proxy_rules_endpoint_changes_total 2
gridproxy_sync_proxy_rules_iptables_partial_restore_failures_total 2
gridproxy_sync_proxy_rules_iptables_restore_failures_total 2
gridproxy_sync_proxy_rules_service_changes_pending 2
gridproxy_sync_proxy_rules_service_changes_total 4`)
	run(nil, []*corev1.Service{b2})
	if n := testutil.ToFloat64(m.changes.servicesPending) + testutil.ToFloat64(m.changes.slicesPending); n != 0 {
		t.Errorf("%v changes pending after a run that succeeded", n)
	}
}

// TestNetworkProgramming: each trigger is measured once, by the run that brought it into
// the kernel, and none from before this process.
func TestNetworkProgramming(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m, registry := newTest(t, start)
	at := func(seconds float64) string {
		return start.Add(time.Duration(seconds * float64(time.Second))).Format(time.RFC3339Nano)
	}
	run := func(err error, end float64, slices ...*topology.Slice) {
		m.Synced(syncer.Result{Err: err, End: start.Add(time.Duration(end * float64(time.Second))), Snapshot: topology.Snapshot{Slices: slices}})
	}
	old := slice("a", at(-5))
	run(nil, 1, old, slice("b", "nonsense"))                           // before our time; unreadable
	run(errors.New("refused"), 3, old, slice("b", at(2)))              // not in the kernel yet
	run(nil, 4, old, slice("b", at(2)))                                // 2 s
	run(nil, 5, slice("a", at(-5)), slice("b", at(2)), slice("c", "")) // touched, not triggered
	run(nil, 9, slice("a", at(8.5)), slice("b", at(2)))                // 0.5 s
	expect(t, registry, `gridproxy_network_programming_duration_seconds 2`)
	problem := testutil.GatherAndCompare(registry, strings.NewReader(""), "gridproxy_network_programming_duration_seconds")
	if problem == nil || !strings.Contains(problem.Error(), "gridproxy_network_programming_duration_seconds_sum 2.5") {
		t.Errorf("want a sum of 2.5 s: %v", problem)
	}
}

func TestClosure(t *testing.T) {
	m, registry := newTest(t, time.Now())
	port := func(name, port string, c topology.Closure, usable bool) *topology.ServicePort {
		sp := &topology.ServicePort{Name: topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}, Port: port}, Closure: c}
		if usable {
			sp.Local = []topology.Endpoint{{}}
		}
		return sp
	}
	out := topology.Closure{Keys: []string{"zone"}, LeftOut: []topology.ReasonCount{{Reason: topology.ReasonOtherUnit, Count: 1}, {Reason: topology.ReasonNoNodeName, Count: 1}}}
	m.Synced(syncer.Result{
		View: topology.View{Ports: []*topology.ServicePort{
			port("closed", "a", out, false), port("closed", "b", out, true),
			port("empty", "", out, false), port("open", "", topology.Closure{}, false),
			port("wrong", "", topology.Closure{OwnOnly: true, Malformed: "not JSON"}, true),
		}},
		Flows: syncer.FlowsResult{Took: time.Second, Deleted: 5, Outlived: 6},
	})
	expect(t, registry, `
gridproxy_closed_services 3
gridproxy_closed_services_without_endpoints 1
gridproxy_conntrack_reconciler_deleted_entries_total 5
gridproxy_conntrack_reconciler_sync_duration_seconds 1
gridproxy_endpoints_left_out reason=no nodeName 3
gridproxy_endpoints_left_out reason=other unit 3
gridproxy_flows_outliving_closure_total 6
gridproxy_iptables_ct_state_invalid_dropped_packets_total 3
gridproxy_iptables_localhost_nodeports_accepted_packets_total 4
gridproxy_malformed_annotations 1
gridproxy_sync_proxy_rules_iptables_total ip_family=IPv4 table=nat 12`)
}

// TestWithoutEndpoints resolves real Services. A Service of whose keys the node has none is not
// counted: there is no unit that lacks endpoints. On an unknown node all closed Services count.
func TestWithoutEndpoints(t *testing.T) {
	object := func(name, annotation string) *corev1.Service {
		s := service(name)
		s.UID = types.UID(name)
		s.Annotations = map[string]string{"topologyKeys": annotation}
		s.Spec = corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{Port: 80}}}
		return s
	}
	s := topology.Snapshot{
		Nodes: map[string]labels.Set{"zoned": {"zone": "a"}, "bare": {}},
		Services: []*corev1.Service{
			object("by-site", `["site"]`), object("by-zone", `["zone"]`), object("by-either", `["site","zone"]`), object("wrong", `[`),
		},
	}
	for _, c := range []struct {
		node, fallback, want string
	}{
		{"zoned", "", "3"}, // by-zone, by-either, wrong
		{"bare", "", "1"},  // wrong
		{"bare", string(topology.WithoutUnitLocal), "1"},
		{"gone", "", "4"},
	} {
		s.Node = c.node
		m, registry := newTest(t, time.Now())
		m.Synced(syncer.Result{Snapshot: s, View: topology.Resolve(s, topology.Config{NodesWithoutUnit: topology.NodesWithoutUnit(c.fallback)})})
		expect(t, registry, "gridproxy_closed_services 4\ngridproxy_closed_services_without_endpoints "+c.want)
	}
}

// TestNoLocalEndpoints compiles real Services, because the metric depends on when Compile sets
// Drop.
func TestNoLocalEndpoints(t *testing.T) {
	local, number := corev1.ServiceInternalTrafficPolicyLocal, int32(8080)
	object := func(name string, spec corev1.ServiceSpec) *corev1.Service {
		s := service(name)
		s.UID = types.UID(name)
		s.Spec = spec
		s.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: spec.HealthCheckNodePort}}
		s.Spec.ClusterIPs = []string{spec.ClusterIP}
		s.Spec.HealthCheckNodePort = 0
		return s
	}
	remote := func(name string) *topology.Slice {
		node, port := "other", ""
		return topology.NewSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, NodeName: &node}},
		})
	}
	s := topology.Snapshot{
		Node: "me", Host: topology.Host{IPv4: true, IPv6: true},
		Services: []*corev1.Service{
			object("a", corev1.ServiceSpec{Type: "ClusterIP", ClusterIP: "10.96.0.1", InternalTrafficPolicy: &local}),
			object("b", corev1.ServiceSpec{Type: "NodePort", ClusterIP: "10.96.0.2", ExternalTrafficPolicy: "Local", ExternalIPs: []string{"203.0.113.1"}, HealthCheckNodePort: 30000}),
			object("c", corev1.ServiceSpec{Type: "NodePort", ClusterIP: "10.96.0.3", ExternalTrafficPolicy: "Local", HealthCheckNodePort: 30001}), // no endpoints at all: refused
			object("d", corev1.ServiceSpec{Type: "NodePort", ClusterIP: "10.96.0.4", ExternalTrafficPolicy: "Local", HealthCheckNodePort: 30002}), // one here
		},
		Slices: []*topology.Slice{remote("a"), remote("b"), remote("d")},
	}
	s.Slices[2].Endpoints[0].Node = s.Node
	m, registry := newTest(t, time.Now())
	v := topology.Resolve(s, topology.Config{})
	m.Synced(syncer.Result{Snapshot: s, View: v, Ruleset: rules.Compile(v, rules.Config{})})
	expect(t, registry, `
gridproxy_sync_proxy_rules_no_local_endpoints_total ip_family=IPv4 traffic_policy=external 1
gridproxy_sync_proxy_rules_no_local_endpoints_total ip_family=IPv4 traffic_policy=internal 1`)
}

// TestAddressConflicts: the gauge has the number of conflicts.
func TestAddressConflicts(t *testing.T) {
	m, registry := newTest(t, time.Now())
	m.Synced(syncer.Result{Ruleset: rules.Ruleset{AddressConflicts: make([]rules.AddressConflict, 2)}})
	expect(t, registry, "gridproxy_address_conflicts 2")
	m.Synced(syncer.Result{})
	if v := testutil.ToFloat64(m.conflicts); v != 0 {
		t.Errorf("it is %v when they have gone", v)
	}
}

// TestConditions: gauges of conditions follow their functions, also back to 0.
func TestConditions(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	now := true
	ask := func() bool { return now }
	m := New(registry, time.Now(), Kernel{OtherProxy: ask, Held: ask, Trial: ask})
	m.Synced(syncer.Result{})
	expect(t, registry, "gridproxy_other_proxy_suspected 1\ngridproxy_snapshot_held_back 1\ngridproxy_trial_chains 1")
	now = false
	m.Synced(syncer.Result{})
	const none = `# HELP gridproxy_other_proxy_suspected 1 if another service proxy is suspected to write into this node's rules again after each repair.
# TYPE gridproxy_other_proxy_suspected gauge
gridproxy_other_proxy_suspected 0
# HELP gridproxy_snapshot_held_back 1 while a Snapshot is held back, because the API server does not list what every cluster has.
# TYPE gridproxy_snapshot_held_back gauge
gridproxy_snapshot_held_back 0
# HELP gridproxy_trial_chains 1 if there are chains of a gridproxy with --service-proxy-name, which packets meet before ours.
# TYPE gridproxy_trial_chains gauge
gridproxy_trial_chains 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(none),
		"gridproxy_other_proxy_suspected", "gridproxy_snapshot_held_back", "gridproxy_trial_chains"); err != nil {
		t.Error(err)
	}
}

// TestServers: gauges follow the state, also back to 0, and the counter of messages only grows.
func TestServers(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	now := Servers{Servers: 3, Destinations: 5, Draining: 2, Conflicts: 1, Refused: 4, Degraded: true, Messages: map[string]int{"server": 3, "entry": 7}}
	m := New(registry, time.Now(), Kernel{Servers: func() Servers { return now }})
	m.Synced(syncer.Result{})
	m.Synced(syncer.Result{})
	expect(t, registry, `
gridproxy_ipvs_conflicts 1
gridproxy_ipvs_degraded 1
gridproxy_ipvs_draining_real_servers 2
gridproxy_ipvs_netlink_messages_total object=entry 7
gridproxy_ipvs_netlink_messages_total object=server 3
gridproxy_ipvs_real_servers 5
gridproxy_ipvs_refused 4
gridproxy_ipvs_virtual_servers 3`)
	now = Servers{Messages: map[string]int{"server": 6, "entry": 7}}
	m.Synced(syncer.Result{Err: errors.New("refused")})
	expect(t, registry, `gridproxy_ipvs_netlink_messages_total object=entry 7
gridproxy_ipvs_netlink_messages_total object=server 6`)
	for name, g := range map[string]prometheus.Gauge{"degraded": m.servers.degraded, "draining": m.servers.draining, "conflicts": m.servers.conflicts, "refused": m.servers.refused} {
		if v := testutil.ToFloat64(g); v != 0 {
			t.Errorf("%s is %v when it is over", name, v)
		}
	}
}

// TestShadow: before the first comparison the metrics are absent, not 0. A comparison that fails
// does not change them.
func TestShadow(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	now := Shadow{Chains: []ChainCount{{"nat", "IPv4", 3}, {"nat", "IPv6", 0}}, Services: 2}
	m := New(registry, time.Now(), Kernel{Shadow: func() Shadow { return now }})
	there := func(when, want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
			"gridproxy_shadow_chains_different", "gridproxy_shadow_services_different"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	numbers := func(chains, services int) string {
		return fmt.Sprintf(`# HELP gridproxy_shadow_chains_different With --shadow: chains in the kernel that differ from what would be written.
# TYPE gridproxy_shadow_chains_different gauge
gridproxy_shadow_chains_different{ip_family="IPv4",table="nat"} %d
gridproxy_shadow_chains_different{ip_family="IPv6",table="nat"} 0
# HELP gridproxy_shadow_services_different With --shadow: Services whose chains differ.
# TYPE gridproxy_shadow_services_different gauge
gridproxy_shadow_services_different %d
`, chains, services)
	}
	there("at first", "")
	m.Synced(syncer.Result{Err: errors.New("cannot be read")})
	there("after a failure", "")
	m.Synced(syncer.Result{})
	there("after a comparison", numbers(3, 2))
	now = Shadow{Chains: []ChainCount{{"nat", "IPv4", 0}, {"nat", "IPv6", 0}}}
	m.Synced(syncer.Result{Err: errors.New("cannot be read")})
	there("after another failure", numbers(3, 2))
	m.Synced(syncer.Result{})
	there("when nothing differs any more", numbers(0, 0))
}
