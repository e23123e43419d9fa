package ipvs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Leftover reports whether IPVS mode, ours or kube-proxy's, has left anything in the calling
// thread's network namespace: our link, or a set of ours.
func Leftover() (bool, error) {
	k, err := openKernel()
	if err != nil {
		return false, fmt.Errorf("looking for what IPVS mode left: %w", err)
	}
	defer k.close()
	o, err := k.observe(context.Background(), nil)
	if err != nil {
		return false, fmt.Errorf("looking for what IPVS mode left: %w", err)
	}
	return o.Link || len(o.Sets) > 0, nil
}

// Cleanup removes our chains, virtual servers with their connections, link and sets, kube-proxy's
// too, of both families. Servers of other programs stay, and so does a set that a rule of another
// program names. Everything else that is left is an error. Cleanup may be repeated. It counts in
// BackendConfig.Removal, which may say that nothing is to be removed.
func (b *Backend) Cleanup(ctx context.Context) error {
	b.known = false
	// The chains go first: the sets cannot go while rules name them.
	errTables := b.config.Tables.Cleanup(ctx)
	err := b.cleanUp(ctx)
	if err != nil {
		err = fmt.Errorf("cleaning up IPVS: %w", err)
	}
	return errors.Join(errTables, err)
}

// cleanUp removes everything but the chains, or only counts it if Removal is dry. What remains
// is an error, except for sets that rules of other programs name. The link and the sets go
// last: they tell which servers are ours.
func (b *Backend) cleanUp(ctx context.Context) error {
	ops, err := b.planRemoval(ctx)
	if err != nil {
		return err
	}
	link := b.planner.observed.Link
	if b.config.Removal.IsDry() {
		b.countRemoval(ops, link)
		b.countSets()
		return nil
	}
	r := syncRun{backend: b, ctx: ctx}
	r.do(ops, false)
	if err := r.err(); err != nil {
		return err
	}
	b.countRemoval(ops, link)
	left, err := b.planRemoval(ctx)
	if err != nil {
		return fmt.Errorf("checking that our virtual servers are gone: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("after the removal there still are %d virtual servers, addresses or set entries of ours: %w",
			len(left), errComesBack)
	}
	if err := b.remove(); err != nil {
		return err
	}
	return b.checkRemoved(ctx)
}

// countRemoval counts in Removal the virtual servers and addresses that ops delete, and our
// link if link is true. It does not count sets: some of these may stay.
func (b *Backend) countRemoval(ops []operation, link bool) {
	for _, op := range ops {
		switch op.Kind {
		case deleteServer:
			b.config.Removal.Add(whereOf(op.family()), "virtual servers", 1)
		case deleteAddress:
			b.config.Removal.Add(whereOf(op.family()), "addresses", 1)
		default: // goes with one of these, or with a set
		}
	}
	if link {
		b.config.Removal.Add("machine", "link "+Link, 1)
	}
}

// countSets counts the sets that would go. One that a rule of another program names would stay,
// which only the kernel knows.
func (b *Backend) countSets() {
	for _, s := range knownSets() {
		if _, found := b.planner.observed.Sets[s.name]; found {
			b.config.Removal.Add(whereOf(s.family), "ipsets", 1)
		}
	}
}

// whereOf returns how a Removal names the place of virtual servers of a family.
func whereOf(f netfilter.Family) string { return "IPVS " + f.String() }

// planRemoval reads the kernel, and plans to delete every virtual server, address and entry of
// ours.
func (b *Backend) planRemoval(ctx context.Context) ([]operation, error) {
	fresh, err := b.kernel.observe(ctx, nil)
	if err != nil {
		return nil, err
	}
	b.planner.setObserved(fresh)
	b.planner.setDesired(b.compiler.Compile(rules.Ruleset{}, Config{Retire: true}))
	return slices.DeleteFunc(b.planner.shrink(limits{now: b.now()}), b.planner.skip), nil
}

// checkRemoved reads the kernel, and returns an error if the link or a set exists again. It
// destroys each set that it finds: only one that a rule of another program names may stay.
func (b *Backend) checkRemoved(ctx context.Context) error {
	fresh, err := b.kernel.observe(ctx, nil)
	if err != nil {
		return fmt.Errorf("checking that link and sets are gone: %w", err)
	}
	if fresh.Link {
		return fmt.Errorf("after the removal there still is link %s: %w", Link, errComesBack)
	}
	for name := range fresh.Sets {
		inUse, err := b.kernel.destroySet(name)
		if err != nil {
			return err
		}
		if !inUse {
			return fmt.Errorf("after the removal there still was ipset %s: %w", name, errComesBack)
		}
	}
	return nil
}

// errComesBack reports that something exists again after its removal.
var errComesBack = errors.New("another process (gridproxy run, kube-proxy) writes them again; stop it first")

func (b *Backend) remove() error {
	return errors.Join(
		b.kernel.deleteLink(), b.kernel.removeTries(),
		b.destroySets(func(knownSet) bool { return true }),
	)
}

// removeTries removes what a process left that was killed while it probed the kernel. Its chain
// goes with ours.
func (k *kernel) removeTries() error {
	var errs []error
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		if k.servers != nil {
			if err := k.deleteServer(tryServer(f)); !errors.Is(err, unix.EAFNOSUPPORT) {
				errs = append(errs, err)
			}
		}
		switch has, err := k.hasSets(); {
		case err != nil:
			errs = append(errs, err)
		case has:
			_, err := k.destroySet(netfilter.SetName(f, tryName))
			errs = append(errs, err)
		}
	}
	link, err := k.links.LinkByName(tryLink)
	switch {
	case errors.As(err, new(netlink.LinkNotFoundError)):
		return errors.Join(errs...)
	case err == nil:
		err = k.links.LinkDel(link)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("deleting link %s: %w", tryLink, err))
	}
	return errors.Join(errs...)
}
