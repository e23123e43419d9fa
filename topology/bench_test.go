package topology_test

import (
	"fmt"
	"testing"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkMemo: one run over 5,000 closed Services of which none changed.
func BenchmarkMemo(b *testing.B) {
	s := topology.Snapshot{Node: "a", Nodes: map[string]labels.Set{"a": {"zone": "x"}, "b": {"zone": "y"}}}
	for i := range 5000 {
		name := fmt.Sprintf("svc-%04d", i)
		s.Services = append(s.Services, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{topology.AnnotationKeys: `["zone"]`}},
			Spec:       corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.96.%d.%d", i/250, i%250+1), Ports: []corev1.ServicePort{{Port: 80}}},
		})
		s.Slices = append(s.Slices, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080))}},
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)}, NodeName: new("a")},
				{Addresses: []string{fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)}, NodeName: new("b")},
			},
		})
	}
	var memo topology.Memo
	memo.Resolve(s, topology.Config{})
	b.ReportAllocs()
	for b.Loop() {
		s.LastKeys = memo.Resolve(s, topology.Config{}).LastKeys
	}
}
