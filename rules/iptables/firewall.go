package iptables

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gridproxy/rules/netfilter"
)

// guard is a chain that the kubelet keeps too, KUBE-FIREWALL: it keeps packets from
// outside away from loopback addresses once the machine routes these (CVE-2020-8558). The
// kubelet may have more rules in it, so it is only ever completed: never emptied, never
// removed.
type guard struct {
	rules    []netfilter.Rule
	declared bool
	found    int // of rules
}

func (g *guard) read(line netfilter.Line) {
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

// CanGuard says why this machine must not route loopback addresses, if that is so: while IPv4
// cannot be written nothing can guard them.
func (b *Backend) CanGuard() error {
	if !slices.Contains(b.Families(), netfilter.IPv4) {
		closed := b.Closed()[netfilter.IPv4]
		return fmt.Errorf("iptables-%s does not work for IPv4 here, so nothing can keep packets from outside away from loopback addresses; repair it, or start with --iptables-localhost-nodeports=false: %w", b.variant, errors.Join(closed.Err, closed.LeftOut))
	}
	return nil
}

// Guard makes what must stand before anything lets this machine route loopback addresses, where
// it is missing: KUBE-FIREWALL with its rule, and the jumps to it. Sync does so too.
func (b *Backend) Guard(ctx context.Context) error {
	if b.CanGuard() != nil {
		b.Open(ctx, true)
	}
	if err := b.CanGuard(); err != nil {
		return err
	}
	for _, k := range b.keepers {
		if k.kernel.family != netfilter.IPv4 {
			continue
		}
		if err := k.kernel.guard(ctx); err != nil {
			return fmt.Errorf("guarding loopback addresses with iptables-%s: %w", b.variant, err)
		}
	}
	return nil
}

func (k *kernel) guard(ctx context.Context) error {
	ix, err := k.readGuard(ctx)
	if err != nil {
		return err
	}
	if _, err := k.completeGuards(ctx, ix); err != nil {
		return err
	}
	if _, err := k.insertJumps(ctx, ix); err != nil {
		return err
	}
	if ix, err = k.readGuard(ctx); err == nil && (ix.guards[place{netfilter.Filter, netfilter.ChainFirewall}].lacks() || ix.lacksJumps()) {
		err = errors.New("chain filter/" + netfilter.ChainFirewall + " or a jump to it was written, but is not in the kernel; something else removes it: find out what, and stop it")
	}
	return err
}

// readGuard reads of the kernel what guard is about.
func (k *kernel) readGuard(ctx context.Context) (*index, error) {
	ix := emptyIndex(netfilter.KubeNames, 0)
	ix.guards[place{netfilter.Filter, netfilter.ChainFirewall}] = &guard{rules: firewallChainOfKubelet().Rules}
	for _, c := range filterJumps(Options{LocalhostNodePorts: true}) {
		jumps := slices.DeleteFunc(c.Rules, func(r netfilter.Rule) bool { return r.Jump != netfilter.ChainFirewall })
		if len(jumps) > 0 {
			ix.builtin[place{netfilter.Filter, c.Name}] = newHooks(jumps)
		}
	}
	if err := k.read(ctx, ix, netfilter.Filter); err != nil {
		return nil, fmt.Errorf("reading chain filter/%s: %w", netfilter.ChainFirewall, err)
	}
	return ix, nil
}

// completeGuards adds what KUBE-FIREWALL lacks and returns how many transactions that
// took. The jumps to it are made with the others.
func (k *kernel) completeGuards(ctx context.Context, ix *index) (int, error) {
	n := 0
	for p, g := range ix.guards {
		if !g.lacks() {
			continue
		}
		done, err := k.completeGuard(ctx, p, g.rules)
		n += done
		if err != nil {
			return n, fmt.Errorf("completing chain %s/%s: %w", p.table, p.chain, err)
		}
	}
	return n, nil
}

func (k *kernel) completeGuard(ctx context.Context, p place, rules []netfilter.Rule) (int, error) {
	n := 0
	exists, err := k.command.hasChain(ctx, p)
	if err == nil && !exists {
		err = k.command.newChain(ctx, p)
		n++
	}
	if err != nil {
		return n, err
	}
	for _, r := range rules {
		spec := words(r.Append(nil, k.family))
		there, err := k.command.hasRule(ctx, p, spec)
		if err == nil && !there {
			err = k.command.appendRule(ctx, p, spec)
			n++
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
