package ipvs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gridproxy/rules/netfilter"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Names of what probing creates and removes again. The addresses of tryServer are reserved for
// documentation (RFC 5737, RFC 3849), so no program has a server there.
const (
	tryName = netfilter.ChainTry // set and chain
	tryLink = "kube-ipvs-try"
)

// tryServer returns the server that probes an address family and a scheduler.
func tryServer(f netfilter.Family) ServerKey {
	addr := netip.AddrFrom4([4]byte{198, 51, 100, 0})
	if f == netfilter.IPv6 {
		addr = netip.MustParseAddr("2001:db8::")
	}
	return ServerKey{Addr: netip.AddrPortFrom(addr, 20000), Proto: netfilter.TCP}
}

// prober finds out what this kernel lacks for IPVS mode, by trying everything once. It removes
// everything that it creates.
type prober struct {
	kernel   *kernel
	chains   restorer // nil = iptables is not asked
	families []netfilter.Family
	missing  []string // kernel modules
	why      []string // the kernel's errors
}

// run tries everything, and names everything that is missing in one error. Any other ends it.
func (p *prober) run(ctx context.Context, scheduler string) error {
	for _, try := range []func(context.Context) error{
		func(context.Context) error { return p.tryServers(scheduler) },
		func(context.Context) error { return p.tryLink() },
		p.removeLeftovers,
		func(context.Context) error { return p.trySets() },
		p.tryMatches,
	} {
		if err := try(ctx); err != nil {
			return fmt.Errorf("probing the kernel for IPVS mode: %w", err)
		}
	}
	if len(p.missing) == 0 {
		return nil
	}
	return fmt.Errorf("this kernel lacks what IPVS mode needs: %s; load these modules on the host (modprobe -a %s), "+
		"or boot a kernel that has them, or use --proxy-mode=iptables (%s)",
		strings.Join(p.missing, ", "), strings.Join(p.missing, " "), strings.Join(p.why, "; "))
}

// lacks notes a missing module, with err as the reason, and returns nil. If this process only
// lacks a permission, it notes nothing and returns an error that says so.
func (p *prober) lacks(module string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w; run as root, or with the capability NET_ADMIN in the host's network namespace", err)
	}
	p.missing = append(p.missing, module)
	p.why = append(p.why, fmt.Sprintf("%s: %v", module, err))
	return nil
}

func (p *prober) tryServers(scheduler string) error {
	if p.kernel.servers == nil {
		p.missing = append(p.missing, "ip_vs", schedulerModule(scheduler))
		p.why = append(p.why, "ip_vs: "+procServers+" does not exist")
		return nil
	}
	for _, f := range p.families {
		switch err := p.kernel.tryScheduler(f, scheduler); {
		case errors.Is(err, unix.ENOENT):
			return p.lacks(schedulerModule(scheduler), err) // the other family has the same schedulers
		case errors.Is(err, unix.EAFNOSUPPORT):
			if err := p.lacks("ip_vs with CONFIG_IP_VS_IPV6", err); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	return nil
}

// tryScheduler creates a server and deletes it. It reads the server in between, because
// moby/ipvs also reports success if no kernel module answers. The error is ENOENT if the kernel
// lacks the scheduler, and EAFNOSUPPORT if it lacks the family.
func (k *kernel) tryScheduler(f netfilter.Family, scheduler string) error {
	key := tryServer(f)
	if err := k.deleteServer(key); err != nil { // of a process that was killed while it probed
		return err
	}
	if err := k.addServer(key, Server{Scheduler: scheduler}); err != nil {
		return err
	}
	found, err := k.readServers(context.Background(), nil)
	if err == nil && found.Servers[key].Scheduler != scheduler {
		err = fmt.Errorf("the kernel took virtual server %s with scheduler %s, but does not list it: %v", key, scheduler, found.Servers[key])
	}
	return errors.Join(err, k.deleteServer(key))
}

func (p *prober) tryLink() error {
	if err := p.kernel.findLink(); err != nil || p.kernel.link != nil {
		return err
	}
	link := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: tryLink}}
	err := p.kernel.links.LinkAdd(link)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return p.lacks("dummy", err)
	}
	if err := p.kernel.links.LinkDel(link); err != nil {
		return fmt.Errorf("deleting link %s, which was created to probe the kernel: %w", tryLink, err)
	}
	return nil
}

// removeLeftovers removes, in both families, what a process left that was killed while it probed: a
// set cannot be created again while a rule names it.
func (p *prober) removeLeftovers(ctx context.Context) error {
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		set := netfilter.SetName(f, tryName)
		inUse, err := p.kernel.destroySet(set)
		if err != nil || !inUse || p.chains == nil {
			continue // trySets reports the error, if it matters
		}
		if err := p.restore(ctx, f, removeTry); err != nil {
			return err
		}
		if err := p.destroy(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

// destroy destroys a set that no rule names any more. It waits a second for the kernel to
// release the set after the rule was deleted; then it returns an error.
func (p *prober) destroy(ctx context.Context, set string) error {
	for range 100 {
		inUse, err := p.kernel.destroySet(set)
		if err != nil || !inUse {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("ipset %s, which gridproxy creates to probe the kernel, cannot be destroyed, because a rule names it: "+
		"find it with iptables-nft-save and iptables-legacy-save, and delete it", set)
}

func (p *prober) trySets() error {
	kinds := slices.Compact(slices.Sorted(maps.Values(netfilter.SetTypes())))
	for _, f := range p.families {
		for _, kind := range kinds {
			name := netfilter.SetName(f, tryName)
			if _, err := p.kernel.destroySet(name); err != nil {
				return p.lacks("ip_set", err)
			}
			err := p.kernel.createSet(name, kind, f)
			if errors.Is(err, nl.IPSetError(nl.IPSET_ERR_FIND_TYPE)) {
				module := netfilter.SetModule(kind)
				if slices.Contains(p.missing, module) {
					continue // noted for the other family
				}
				err = p.lacks(module, err)
			} else if err == nil {
				_, err = p.kernel.destroySet(name)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// tryMatches loads a rule with each match that the chains of IPVS mode need, and notes what is
// missing. The tools accept every match, so only a rule in the kernel proves that the kernel
// has it. Without iptables or ipsets it tries nothing.
func (p *prober) tryMatches(ctx context.Context) error {
	if p.chains == nil || slices.Contains(p.missing, "ip_set") {
		return nil
	}
	for _, f := range p.families {
		set := netfilter.SetName(f, tryName)
		if err := p.kernel.createSet(set, "hash:ip,port", f); err != nil {
			continue // missing, and noted before
		}
		matches := []struct{ module, rule string }{
			{"xt_set", "-m set --match-set " + set + " dst,dst"},
			{"xt_ipvs", "-m ipvs --ipvs"},
		}
		for _, m := range matches {
			lacks, err := p.tryRule(ctx, f, m.rule)
			if lacks != nil && !slices.Contains(p.missing, m.module) {
				err = errors.Join(p.lacks(m.module, lacks), err)
			}
			if err != nil {
				return errors.Join(err, p.destroy(ctx, set))
			}
		}
		if err := p.destroy(ctx, set); err != nil {
			return err
		}
	}
	return nil
}

// What tryRule restores: the chain, empty, and then without it.
const (
	declareTry = ":" + tryName + " - [0:0]\n"
	removeTry  = declareTry + "-X " + tryName + "\n"
)

// tryRule writes a chain with one rule, to which no rule jumps, and removes it. lacks is the error
// of the rule, if the kernel takes the chain; err is any other failure.
func (p *prober) tryRule(ctx context.Context, f netfilter.Family, rule string) (lacks, err error) {
	lacks = p.restore(ctx, f, declareTry+"-A "+tryName+" "+rule+" -j RETURN\n")
	if errors.Is(lacks, errLocked) {
		return nil, lacks // nothing was written
	}
	// If the chain was not written, declaring it creates it, so that it can be removed.
	if err := p.restore(ctx, f, removeTry); err != nil {
		return nil, errors.Join(lacks, err)
	}
	return lacks, nil
}

// errLocked reports that a rule was not tried.
var errLocked = errors.New("another program holds the xtables lock; the kernel is probed again at the next sync")

func (p *prober) restore(ctx context.Context, f netfilter.Family, lines string) error {
	locked, err := p.chains.Restore(ctx, f, "*nat\n"+lines+"COMMIT\n")
	if locked {
		err = fmt.Errorf("%w: %w", errLocked, err)
	}
	return err
}
