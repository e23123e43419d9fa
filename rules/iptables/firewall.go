package iptables

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// CanGuard returns why this machine must not route loopback addresses, or nil. Without a working
// IPv4 family they have no guard.
func (b *Backend) CanGuard() error {
	if !slices.Contains(b.Families(), netfilter.IPv4) {
		closed := b.Closed()[netfilter.IPv4]
		return fmt.Errorf("iptables-%s does not work for IPv4 here, so loopback addresses cannot be guarded against packets from outside; "+
			"repair it, or start with --iptables-localhost-nodeports=false: %w", b.variant, errors.Join(closed.Err, closed.LeftOut))
	}
	return nil
}

// Guard creates what must exist before this machine routes loopback addresses: KUBE-FIREWALL with
// its rule, and the jumps to it. Sync does so too.
func (b *Backend) Guard(ctx context.Context) error {
	if b.CanGuard() != nil {
		b.Open(ctx, true)
	}
	if err := b.CanGuard(); err != nil {
		return err
	}
	for _, k := range b.syncers {
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
	ks, err := k.readGuard(ctx)
	if err != nil {
		return err
	}
	if _, err := k.completeGuards(ctx, ks); err != nil {
		return err
	}
	if _, err := k.insertMissing(ctx, ks, func(jumpAt, []string) bool { return true }); err != nil {
		return err
	}
	ks, err = k.readGuard(ctx)
	firewall := render.ChainID{Table: netfilter.Filter, Chain: netfilter.ChainFirewall}
	if err == nil && (ks.chain(firewall).status() != equal || ks.lacksJumps()) {
		err = errors.New("chain filter/" + netfilter.ChainFirewall + " or a jump to it was written, but is not in the kernel: " +
			"find the process that removes it, and stop it")
	}
	return err
}

// readGuard reads the chains that guard is about.
func (k *kernel) readGuard(ctx context.Context) (*kernelState, error) {
	fixed := render.Fixed(rules.Ruleset{}, render.Options{LocalhostNodePorts: true}).Tables[netfilter.Filter]
	var want render.Block
	for _, c := range slices.Concat(fixed.Chains, fixed.Jumps) {
		if c.Name != netfilter.ChainFirewall {
			c.Rules = slices.DeleteFunc(c.Rules, func(r netfilter.Rule) bool { return r.Jump != netfilter.ChainFirewall })
		}
		if len(c.Rules) > 0 {
			want.Chains = append(want.Chains, render.TableChain{Table: netfilter.Filter, Chain: c})
		}
	}
	ks := newKernelState(render.Options{}, ignoring, len(want.Chains))
	ks.want(want)
	if err := k.read(ctx, ks, netfilter.Filter); err != nil {
		return nil, fmt.Errorf("reading chain filter/%s: %w", netfilter.ChainFirewall, err)
	}
	return ks, nil
}

// completeGuards adds the rules that completed chains lack, and returns the number of transactions.
// The jumps to them are inserted with the others.
func (k *kernel) completeGuards(ctx context.Context, ks *kernelState) (int, error) {
	n := 0
	for _, id := range ks.sorted(render.Completed) {
		c := ks.chain(id)
		if c.status() == equal {
			continue
		}
		done, err := k.completeGuard(ctx, id, c.rules)
		n += done
		if err != nil {
			return n, fmt.Errorf("completing chain %s: %w", id, err)
		}
	}
	return n, nil
}

func (k *kernel) completeGuard(ctx context.Context, p render.ChainID, rules []netfilter.Rule) (int, error) {
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
		spec := r.Args(k.family)
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
