package explain

import (
	"slices"
	"testing"

	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestChangedServices: of any two sorted lists, exactly the Services whose ports differ are
// yielded, in order, with all of their ports.
func TestChangedServices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before, after []*topology.ServicePort
		for _, service := range []string{"a", "b", "c"} {
			for _, port := range []string{"0", "1", "2"} {
				name := topology.ServicePortName{NamespacedName: types.NamespacedName{Name: service}, Port: port}
				one, other := &topology.ServicePort{Name: name}, &topology.ServicePort{Name: name}
				pair := rapid.SampledFrom([][2]*topology.ServicePort{{one, one}, {one, one}, {one, other}, {one, nil}, {nil, one}, {}}).Draw(t, service+port)
				if pair[0] != nil {
					before = append(before, pair[0])
				}
				if pair[1] != nil {
					after = append(after, pair[1])
				}
			}
		}
		var want, got []string
		for _, service := range []string{"a", "b", "c"} {
			name := types.NamespacedName{Name: service}
			if !slices.Equal(portsOf(before, name), portsOf(after, name)) {
				want = append(want, service)
			}
		}
		for old, now := range ChangedServices(before, after) {
			name := append(slices.Clone(old), now...)[0].Name.NamespacedName
			got = append(got, name.Name)
			if !slices.Equal(old, portsOf(before, name)) || !slices.Equal(now, portsOf(after, name)) {
				t.Fatalf("%s comes with %d and %d ports, not with all of its ports", name, len(old), len(now))
			}
		}
		if !slices.Equal(want, got) {
			t.Fatalf("yielded %v, want %v", got, want)
		}
	})
}
