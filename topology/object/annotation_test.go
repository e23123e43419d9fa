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
