package localdns

import (
	"testing"

	"gridproxy/topology"
)

// TestCountsOfNames: metrics add up what the names of all Services leave out.
func TestCountsOfNames(t *testing.T) {
	n := Node{}
	n.note(topology.DNSView{Services: []*topology.DNSService{{Unnamed: 3}, {Unnamed: 4, Collisions: []string{"a"}}, {Warnings: []string{"b", "c"}}}})
	if got := n.Names(); got.Services != 3 || got.Unnamed != 7 || got.Collisions != 1 || got.Warnings != 1 {
		t.Errorf("%+v", got)
	}
}
