package nodes

import (
	"errors"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// pool hands out addresses of a Node's ranges, one of each to a Pod.
type pool struct {
	ranges []netip.Prefix
	used   map[netip.Addr]bool
	of     map[types.UID][]netip.Addr
}

func newPool(ranges []string) (*pool, error) {
	p := &pool{used: map[netip.Addr]bool{}, of: map[types.UID][]netip.Addr{}}
	for _, r := range ranges {
		prefix, err := netip.ParsePrefix(r)
		if err != nil {
			return nil, fmt.Errorf("reading a Pod range: %w", err)
		}
		p.ranges = append(p.ranges, prefix.Masked())
	}
	return p, nil
}

var errFull = errors.New("no address is free")

// take is the Pod's addresses, which stay the same until free.
func (p *pool) take(pod types.UID) ([]netip.Addr, error) {
	if has := p.of[pod]; has != nil {
		return has, nil
	}
	var taken []netip.Addr
	for _, r := range p.ranges {
		addr := r.Addr().Next().Next() // the first is the bridge's on a real machine
		for ; p.used[addr]; addr = addr.Next() {
		}
		if !r.Contains(addr) {
			return nil, fmt.Errorf("%w in %s", errFull, r)
		}
		taken = append(taken, addr)
	}
	for _, addr := range taken {
		p.used[addr] = true
	}
	p.of[pod] = taken
	return taken, nil
}

func (p *pool) free(pod types.UID) {
	for _, addr := range p.of[pod] {
		delete(p.used, addr)
	}
	delete(p.of, pod)
}
