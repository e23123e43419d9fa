package nodes

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestPoolGivesAnAddressOnce(t *testing.T) {
	p, err := newPool([]string{"10.0.0.0/29", "fd00::/64"})
	if err != nil {
		t.Fatal(err)
	}
	owner := map[netip.Addr]types.UID{}
	pods := []types.UID{"a", "b", "c", "d", "e", "f"} // all of a /29 but two
	for _, pod := range pods {
		addrs, err := p.take(pod)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := p.take(pod); len(addrs) != 2 || !slices.Equal(again, addrs) {
			t.Errorf("pod %s has %v and then %v", pod, addrs, again)
		}
		for _, a := range addrs {
			if owner[a] != "" {
				t.Errorf("pods %s and %s have %s", owner[a], pod, a)
			}
			owner[a] = pod
		}
	}
	if addrs, err := p.take("g"); !errors.Is(err, errFull) {
		t.Errorf("a full range gives %v, %v", addrs, err)
	}
	p.free("c")
	if addrs, err := p.take("g"); err != nil || owner[addrs[0]] != "c" {
		t.Errorf("after one is free: %v, %v", addrs, err)
	}
}
