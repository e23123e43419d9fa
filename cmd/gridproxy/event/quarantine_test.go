package event

import (
	"strings"
	"testing"

	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// viewOf is a View with one port of one Service.
func viewOf(affinity corev1.ServiceAffinity) (topology.View, topology.ServicePortName) {
	name := topology.ServicePortName{
		NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}, Port: "http", Protocol: corev1.ProtocolTCP,
	}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.ServiceSpec{SessionAffinity: affinity},
	}
	return topology.View{Node: "bj-3", Ports: []*topology.ServicePort{{Name: name, Service: svc}}}, name
}

// A quarantined Service gets one Event, in another family again, and again after its release.
func TestQuarantineIsToldOnce(t *testing.T) {
	v, name := viewOf(corev1.ServiceAffinityNone)
	four := iptables.Quarantined{Service: name, Family: netfilter.IPv4, Reason: "line 3 failed"}
	six := iptables.Quarantined{Service: name, Family: netfilter.IPv6, Reason: "line 3 failed"}
	var told Told
	for i, step := range []struct {
		now  []iptables.Quarantined
		want int
	}{
		{nil, 0}, {[]iptables.Quarantined{four}, 1}, {[]iptables.Quarantined{four}, 0},
		{[]iptables.Quarantined{four, six}, 1}, {nil, 0}, {[]iptables.Quarantined{four}, 1},
	} {
		var events []Event
		told, events = NextQuarantined(told, v, step.now)
		if len(events) != step.want {
			t.Fatalf("step %d: %d Events, want %d: %+v", i, len(events), step.want, events)
		}
		for _, e := range events {
			if e.Reason != ReasonQuarantined || e.Service != v.Ports[0].Service || e.LogOnly ||
				!strings.Contains(e.Message, "bj-3") || !strings.Contains(e.Message, "line 3 failed") || !strings.Contains(e.Message, "refused there at all its addresses") {
				t.Errorf("step %d: %+v", i, e)
			}
		}
	}
	kept := four
	kept.Kept = true
	if _, events := NextQuarantined(nil, v, []iptables.Quarantined{kept}); len(events) != 1 || !strings.Contains(events[0].Message, "last good rules stay") {
		t.Errorf("kept: %+v", events)
	}
}

// Services that ask for session affinity get one Event that this node does not keep it.
func TestAffinityThatIsIgnoredIsToldOnce(t *testing.T) {
	v, _ := viewOf(corev1.ServiceAffinityClientIP)
	told, events := NextWithoutAffinity(nil, v, []netfilter.Family{netfilter.IPv4})
	if len(events) != 1 || events[0].Reason != ReasonNoAffinity || !strings.Contains(events[0].Message, "xt_recent") {
		t.Errorf("Events: %+v", events)
	}
	if _, events = NextWithoutAffinity(told, v, []netfilter.Family{netfilter.IPv4}); len(events) > 0 {
		t.Errorf("told twice: %+v", events)
	}
	if _, events = NextWithoutAffinity(told, v, nil); len(events) > 0 {
		t.Errorf("told although the kernel has it: %+v", events)
	}
	v, _ = viewOf(corev1.ServiceAffinityNone)
	if _, events = NextWithoutAffinity(nil, v, []netfilter.Family{netfilter.IPv4}); len(events) > 0 {
		t.Errorf("told of a Service that asks for none: %+v", events)
	}
}
