package object

import (
	"strings"
	"testing"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAnnotationsAreBounded: what a tenant writes into annotations takes little memory and disk,
// and means what it meant before.
func TestAnnotationsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, keys := range []string{`["location"]`, `["` + long + `"]`} {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			topology.AnnotationKeys: keys, topology.AnnotationPolicy: "Ordered", topology.AnnotationScheduler: "sh",
			"superedge.io/other": long, "example.com/other": long,
		}}}
		want, policy, wantErr := topology.ParseKeys(svc.Annotations)
		kept := NewTrimmer().Service(svc).Annotations
		bytes := 0
		for name, text := range kept {
			bytes += len(name) + len(text)
		}
		if bytes > topology.MaxAnnotationBytes+1000 || len(kept) != 3 {
			t.Errorf("%d annotations of %d bytes are kept", len(kept), bytes)
		}
		got, gotPolicy, gotErr := topology.ParseKeys(kept)
		if len(got) != len(want) || gotPolicy != policy || (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
			t.Errorf("keys %v, policy %s, error %v; want %v, %s, %v", got, gotPolicy, gotErr, want, policy, wantErr)
		}
	}
}

// TestMisnamedIsKept: of an annotation that was probably meant to be one that is read, the name is
// kept, so that the warning about it is the same as of the whole Service.
func TestMisnamedIsKept(t *testing.T) {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"topologykeys": strings.Repeat("x", 200_000), "topologyKey": "y", "other": "z"}}}
	kept := NewTrimmer().Service(svc).Annotations
	if len(kept) != 1 || kept["topologyKey"] != "" {
		t.Errorf("%d annotations are kept: %.100v", len(kept), kept)
	}
	name, meant := topology.Misnamed(svc.Annotations, topology.ServiceAnnotations())
	if keptName, keptMeant := topology.Misnamed(kept, topology.ServiceAnnotations()); name != keptName || meant != keptMeant || meant != topology.AnnotationKeys {
		t.Errorf("%s is taken for %s, of the whole Service %s for %s", keptName, keptMeant, name, meant)
	}
}
