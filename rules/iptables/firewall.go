package iptables

import "fmt"

// guard is a chain that the kubelet keeps too, KUBE-FIREWALL: it keeps packets from
// outside away from loopback addresses once the machine routes these (CVE-2020-8558). The
// kubelet may have more rules in it, so it is only ever completed: never emptied, never
// removed.
type guard struct {
	rules    []Rule
	declared bool
	found    int // of rules
}

func (g *guard) read(line Line) {
	if line.Foreign {
		return
	}
	for _, r := range g.rules {
		if r.Same(line.Rule) {
			g.found++
			return
		}
	}
}

func (g *guard) lacks() bool { return !g.declared || g.found < len(g.rules) }

// completeGuards adds what KUBE-FIREWALL lacks and returns how many transactions that
// took. The jumps to it are made with the others.
func (k *kernel) completeGuards(ix *index) (int, error) {
	n := 0
	for p, g := range ix.guards {
		if !g.lacks() {
			continue
		}
		done, err := k.completeGuard(p, g.rules)
		n += done
		if err != nil {
			return n, fmt.Errorf("completing chain %s/%s: %w", p.table, p.chain, err)
		}
	}
	return n, nil
}

func (k *kernel) completeGuard(p place, rules []Rule) (int, error) {
	n := 0
	table := p.table.String()
	exists, err := k.ipt.ChainExists(table, p.chain)
	if err == nil && !exists {
		err = k.ipt.NewChain(table, p.chain)
		n++
	}
	if err != nil {
		return n, err
	}
	for _, r := range rules {
		spec := words(r.Append(nil, k.family))
		there, err := k.ipt.Exists(table, p.chain, spec...)
		if err == nil && !there {
			err = k.ipt.Append(table, p.chain, spec...)
			n++
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
