package topology_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMemoForgetsSnapshots: what Memo remembers of a Service keeps that Service's EndpointSlices
// alive, and not the whole list of a Snapshot. Otherwise, once every Service has changed in a
// Snapshot of its own, as many lists would stay as there are Services.
func TestMemoForgetsSnapshots(t *testing.T) {
	const count = 1000
	s := topology.Snapshot{}
	slice := func(i, version int) *topology.Slice {
		name := fmt.Sprintf("web-%04d", i)
		return &topology.Slice{Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(version), Service: name}
	}
	for i := range count {
		s.Services = append(s.Services, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%04d", i)},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1"},
		})
		s.Slices = append(s.Slices, slice(i, 0))
	}
	var memo topology.Memo
	memo.Resolve(s, topology.Config{})
	before := heap()
	for i := range count {
		s.Slices = slices.Clone(s.Slices)
		s.Slices[i] = slice(i, 1)
		memo.Resolve(s, topology.Config{})
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("%d Services that changed one after the other: %d KiB more than before, want at most 1024", count, grown>>10)
	}
	runtime.KeepAlive(&memo)
	runtime.KeepAlive(s)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
