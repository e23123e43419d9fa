package main

import (
	"bytes"
	"strings"
	"testing"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestEffectOfAMalformedAnnotationIsWordedOnce: render, explain and the daemon's log and Events
// describe the effect in the same words, with last good keys and without.
func TestEffectOfAMalformedAnnotationIsWordedOnce(t *testing.T) {
	for name, lastKeys := range map[string][]string{"no last good keys": nil, "last good keys": {"zone", "room"}} {
		t.Run(name, func(t *testing.T) {
			svc := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1", Annotations: map[string]string{topology.AnnotationKeys: "zone"}},
				Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP"}}},
			}
			s := topology.Snapshot{Node: "n1", Services: []*corev1.Service{svc}}
			if lastKeys != nil {
				s.LastKeys = map[types.UID][]string{"1": lastKeys}
			}
			view := topology.Resolve(s, topology.Config{})
			_, events := event.Next(event.State{}, s, view)
			if len(events) != 1 {
				t.Fatalf("%d Events, want 1", len(events))
			}
			e, err := explain.Service(s, topology.Config{}, view, types.NamespacedName{Namespace: "ns", Name: "web"})
			if err != nil {
				t.Fatal(err)
			}
			var table bytes.Buffer
			if err := e.WriteTable(&table); err != nil {
				t.Fatal(err)
			}
			effect := topology.MalformedEffect(lastKeys)
			for where, text := range map[string]string{
				"log and Event": events[0].Message, "render": strings.Join(doubts(s, view), "\n"), "explain": table.String(),
			} {
				if !strings.Contains(text, effect) {
					t.Errorf("%s does not say %q:\n%s", where, effect, text)
				}
			}
		})
	}
}
