package explain

import (
	"reflect"
	"slices"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestSummaries: a line says of a Service what its whole explanation says, by Service and by node.
func TestSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		c := drawConfig(t)
		lines := Summaries(s, c)
		if len(lines) != len(s.Services) {
			t.Fatalf("%d lines for %d Services", len(lines), len(s.Services))
		}
		for i, svc := range s.Services {
			name := NameOf(svc)
			checkSummary(t, s, c, name, lines[i])
			onNodes, err := OnNodes(s, c, name)
			if err != nil || len(onNodes) != len(s.Nodes) {
				t.Fatalf("%d lines for %d Nodes: %v", len(onNodes), len(s.Nodes), err)
			}
			for _, line := range onNodes {
				there := s
				there.Node, there.Self = line.Node, nil
				checkSummary(t, there, c, name, line)
			}
		}
	})
}

func checkSummary(t *rapid.T, s topology.Snapshot, c topology.Config, name types.NamespacedName, got Summary) {
	e, err := Service(s, c, topology.Resolve(s, c), name)
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{Subject: e.Subject, Notes: e.Notes, Answer: got.Answer, AnsweredBy: got.AnsweredBy}
	want.Node = s.Node
	nodes := []string{}
	for _, p := range e.Ports {
		for _, ep := range p.Endpoints {
			want.Endpoints++
			if ep.Kept {
				want.Kept++
				nodes = append(nodes, ep.Node)
			}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	if answered := len(got.AnsweredBy) > 0; answered && (got.Answer == Refused || got.Answer == Dropped) {
		t.Fatalf("%v answer, yet it is %s", got.AnsweredBy, got.Answer)
	}
	for _, node := range got.AnsweredBy {
		if !slices.Contains(nodes, node) {
			t.Fatalf("%q answers, but none of its endpoints is kept: %v", node, nodes)
		}
	}
	if got.Kept == 0 && got.Answer == Answered {
		t.Fatal("it is answered, but no endpoint is kept")
	}
}
