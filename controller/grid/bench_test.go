package grid

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func largeStatus(units int) v1.DeploymentGridStatus {
	s := v1.DeploymentGridStatus{States: map[string]v1.State{}}
	s.Conditions = is(v1.ConditionReady, "True", "UnitsReady")
	s.Conditions[0].LastTransitionTime = metav1.Time{Time: time.Unix(1_700_000_000, 0)}
	for i := range units {
		value := fmt.Sprintf("unit-%04d", i)
		s.Units = append(s.Units, v1.UnitStatus{
			Value: value, Child: "web-" + value, Template: "default", Nodes: 3, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, Phase: v1.UnitReady,
		})
		s.States[value] = v1.State{JSON: []byte(`{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","status":"True","type":"Available"}],"readyReplicas":2,"replicas":2}`)}
	}
	return s
}

// BenchmarkSameStatus compares the status in the cache with an equal new one.
func BenchmarkSameStatus(b *testing.B) {
	s := largeStatus(1000)
	text, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	var cached v1.DeploymentGridStatus
	if err := json.Unmarshal(text, &cached); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if same, err := sameStatus(cached, s); err != nil || !same {
			b.Fatal(same, err)
		}
	}
}
