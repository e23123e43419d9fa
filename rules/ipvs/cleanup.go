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
	o, err := k.observe(nil)
	if err != nil {
		return false, fmt.Errorf("looking for what IPVS mode left: %w", err)
	}
	return o.Link || len(o.Sets) > 0, nil
}

// Cleanup removes our chains, virtual servers with their connections, link and sets,
// kube-proxy's too, of both families. Servers of others stay, and so does a set that a rule
// of others names. Everything else that is left is an error. Cleaning twice is cleaning once.
func (b *Backend) Cleanup(ctx context.Context) error {
	b.known = false
	// The chains go first: the sets cannot go while rules name them.
	errTables := b.config.Tables.Cleanup(ctx)
	fresh, err := b.kernel.observe(nil)
	if err != nil {
		return errors.Join(errTables, fmt.Errorf("cleaning up IPVS: %w", err))
	}
	b.planner.Read(fresh)
	b.planner.Want(b.compiler.Compile(rules.Ruleset{}, Config{Retire: true}))
	t := turn{backend: b, ctx: ctx}
	t.run(b.planner.Shrink(b.config.now(), Limits{}, nil))
	err = t.err()
	if err == nil {
		err = b.serversLeft() // the link and the sets say which servers are ours, so they go later
	}
	if err == nil {
		err = b.remove()
	}
	if err == nil {
		err = b.rest()
	}
	if err != nil {
		err = fmt.Errorf("cleaning up IPVS: %w", err)
	}
	return errors.Join(errTables, err)
}

// serversLeft reads back whether virtual servers, addresses and entries of ours are gone.
func (b *Backend) serversLeft() error {
	fresh, err := b.kernel.observe(nil)
	if err != nil {
		return fmt.Errorf("reading back whether our virtual servers are gone: %w", err)
	}
	b.planner.Read(fresh)
	left := slices.DeleteFunc(b.planner.Shrink(b.config.now(), Limits{}, nil), b.planner.Skip)
	if len(left) > 0 {
		return fmt.Errorf("after the removal there still are %d virtual servers, addresses or set entries of ours: %w",
			len(left), errComesBack)
	}
	return nil
}

// rest reads back whether the link and the sets are gone. A set that a rule of others names stays.
func (b *Backend) rest() error {
	fresh, err := b.kernel.observe(nil)
	if err != nil {
		return fmt.Errorf("reading back whether link and sets are gone: %w", err)
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

// errComesBack reports something that was removed and is there again.
var errComesBack = errors.New("another process (gridproxy run, kube-proxy) writes them again; stop it first")

// remove removes the link and all sets, by which servers are ours: it comes last.
func (b *Backend) remove() error {
	errs := []error{b.kernel.deleteLink(), b.kernel.removeTries()}
	for _, s := range ourSets() {
		if _, found := b.planner.Has().Sets[s.name]; found {
			errs = append(errs, b.destroy(s.name))
		}
	}
	return errors.Join(errs...)
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
