package watch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestNamedKeys: after each change the keys are those that Resolve has in force, which it remembers
// of annotations that cannot be read.
func TestNamedKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var named namedKeys
		var services []*corev1.Service
		var lastKeys map[types.UID][]string
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			services = slices.DeleteFunc(slices.Clone(services), func(s *corev1.Service) bool { return s.Name == name })
			if rapid.IntRange(0, 4).Draw(t, "delete") > 0 {
				uid := types.UID(fmt.Sprint(name, rapid.IntRange(0, 1).Draw(t, "uid")))
				svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Annotations: map[string]string{}}}
				svc.Annotations[topology.AnnotationKeys] = rapid.SampledFrom([]string{
					`["k0"]`, `["k0","k1"]`, `["k1","*"]`, `["k2","k2"]`, `broken`, `broken too`, `[]`, `null`,
				}).Draw(t, "keys")
				if rapid.Bool().Draw(t, "ordered") {
					svc.Annotations[topology.AnnotationPolicy] = "Ordered"
				}
				services = append(services, svc)
				slices.SortFunc(services, func(a, b *corev1.Service) int { return strings.Compare(a.Name, b.Name) })
			}
			named.follow(services)
			lastKeys = topology.Resolve(topology.Snapshot{Services: services, LastKeys: lastKeys}, topology.Config{}).LastKeys
			want := map[string]int{}
			for _, keys := range lastKeys {
				for _, key := range keys {
					want[key]++
				}
			}
			if diff := cmp.Diff(want, named.count); diff != "" {
				t.Fatalf("Services by key (-want +got):\n%s", diff)
			}
			if unread := slices.Sorted(maps.Keys(named.last)); len(unread) > len(services) {
				t.Fatalf("remembered of Services that are gone: %v", unread)
			}
		}
	})
}

// TestNamedKeysAfterRestart: keys that an earlier process read are in force for a Service whose
// annotation cannot be read, until it can be.
func TestNamedKeysAfterRestart(t *testing.T) {
	service := func(keys string) []*corev1.Service {
		return []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "uid", Annotations: map[string]string{topology.AnnotationKeys: keys},
		}}}
	}
	n := namedKeys{saved: map[types.UID][]string{"uid": {"zone"}}}
	n.follow(service("[malformed"))
	if !n.names("zone") {
		t.Error("the key that was saved is not in force")
	}
	n.follow(service(`["rack"]`))
	n.follow(service("[malformed"))
	if n.names("zone") || !n.names("rack") {
		t.Errorf("keys %v, want the last one that was read, rack", n.count)
	}
}
