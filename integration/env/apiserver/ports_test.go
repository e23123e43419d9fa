package apiserver

import (
	"net/netip"
	"testing"
)

// TestFreePortsOnce: no port is given out twice, though no server listens there yet.
func TestFreePortsOnce(t *testing.T) {
	given := map[netip.AddrPort]bool{}
	for range 400 {
		ports, err := FreePorts(nil, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if given[p] {
				t.Fatalf("%s was given out before", p)
			}
			given[p] = true
		}
	}
}
