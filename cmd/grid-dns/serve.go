package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/grid-dns/clusterzone"
	"gridproxy/cmd/grid-dns/feed"
	"gridproxy/cmd/grid-dns/upstreams"

	"github.com/spf13/cobra"
)

func newServe(std command.Stdio) *cobra.Command {
	o := defaults()
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Answer the queries of this node",
		Args:    command.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return command.NewUsageError(o.read()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), o, command.NewLog(std.Err, "text", o.verbosity))
		},
	}
	o.addTo(cmd.Flags())
	return cmd
}

// serve answers until ctx ends, which is no error, or an address fails, and then until no query
// is led to it any more. It begins when it knows what DNS says, and this machine has one of the
// addresses.
func serve(ctx context.Context, o options, log *slog.Logger) error {
	build := command.ThisBuild()
	log.Info("starting", "version", build.Version, "commit", build.Commit)
	a := &answers{
		own: o.addrs, resolvConf: o.resolvConf, log: log, first: make(chan struct{}),
		zone: &clusterzone.Handler{Random: rand.Uint64}, upstreams: &upstreams.Handler{},
	}
	defer a.upstreams.Close()
	plugins := register(a.zone, a.upstreams, o.addrs)
	var serving atomic.Pointer[[]netip.AddrPort]
	serving.Store(new([]netip.AddrPort))
	client := feed.New(feed.Config{
		Socket: o.socket, File: o.file, Addrs: o.addrs, Apply: a.apply, Log: log,
		Serving:  func() []netip.AddrPort { return *serving.Load() },
		Answered: plugins.queries.answeredAt,
	})
	// The connection to the daemon outlives ctx: the daemon has to hear that this server leaves.
	following, end := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() { client.Run(following) })
	running.Go(func() { a.keepReading(following) })

	addrs, err := awaitStart(ctx, o, a.first, log)
	if ctx.Err() != nil {
		return nil // it was asked to end before it began
	}
	if err != nil {
		return err
	}
	all, err := newCoreDNS(plugins, o.addrs, o.metrics, log)
	if err != nil {
		return err
	}
	opener := &opener{servers: all, log: log, opened: func(at []netip.AddrPort) {
		serving.Store(&at)
		client.Moved()
		log.Info("answering", "addresses", at)
	}}
	if err = opener.run(ctx, addrs); len(opener.open) == 0 {
		return err
	}
	log.Info("leaving") // after an error too: another address may be answered at
	serving.Store(new([]netip.AddrPort))
	awaitNoQueries(client, log)
	return errors.Join(err, all.stop())
}

// opener opens servers as their addresses come. An address that is there first, such as that of
// IPv4, does not wait for another one.
type opener struct {
	servers *coreDNS
	opened  func([]netip.AddrPort) // called with all that are open, after each change
	log     *slog.Logger

	open   []netip.AddrPort
	failed string // the last error, which was logged
}

// run opens the first addresses, and others later, until ctx ends. It returns an error if none
// of the first opens, or if one does not answer any more.
func (o *opener) run(ctx context.Context, first []netip.Addr) error {
	if err := o.take(first); len(o.open) == 0 {
		return err
	}
	tick := time.NewTicker(addressPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-o.servers.ended:
			return err
		case <-tick.C:
		}
		if len(o.open) == len(o.servers.at) {
			tick.Stop()
			continue
		}
		addrs, err := existing(slices.Collect(maps.Keys(o.servers.at)))
		if err = errors.Join(err, o.take(addrs)); err == nil {
			o.failed = ""
		} else if text := err.Error(); text != o.failed {
			o.failed = text
			o.log.Error("an address is not answered at, and is tried again", "err", err)
		}
	}
}

// take opens those of some addresses that are not open. The error joins why some do not open.
func (o *opener) take(addrs []netip.Addr) error {
	var errs []error
	open := slices.Clone(o.open)
	for _, addr := range addrs {
		at := netip.AddrPortFrom(addr, portDNS)
		if slices.Contains(open, at) {
			continue
		}
		if err := o.servers.open(addr); err != nil {
			errs = append(errs, err)
			continue
		}
		open = append(open, at)
	}
	if len(open) > len(o.open) {
		o.open = open
		o.opened(open)
	}
	return errors.Join(errs...)
}

// awaitNoQueries reports to the daemon that this server leaves, and waits until no query is led
// to it any more. It waits longer without a daemon: one that ends meanwhile may not have
// received it.
func awaitNoQueries(client *feed.Client, log *slog.Logger) {
	daemon := client.Connection()
	client.Moved()
	if daemon > 0 {
		time.Sleep(leaveDelay)
	}
	if daemon > 0 && client.Connection() == daemon {
		return
	}
	log.Warn("no daemon hears that this server leaves: it answers until no query is led to it any more", "for", leaveAloneDelay)
	time.Sleep(leaveAloneDelay)
}

// awaitStart waits until it is known what to answer and this machine has one of the addresses.
// It returns those that it has, or an error if ctx ends before.
func awaitStart(ctx context.Context, o options, known <-chan struct{}, log *slog.Logger) ([]netip.Addr, error) {
	waits := func(for_ string) {
		log.Info("waiting for "+for_+" before queries are answered", "socket", o.socket, "addresses", o.addresses)
	}
	say := time.NewTicker(startLogPeriod)
	defer say.Stop()
	for waiting := true; waiting; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-say.C:
			waits("the daemon")
		case <-known:
			waiting = false
		}
	}
	look := time.NewTicker(firstAddressPeriod)
	defer look.Stop()
	for {
		addrs, err := existing(o.addrs)
		if err != nil {
			return nil, err
		}
		if len(addrs) > 0 {
			return addrs, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-say.C:
			waits("the addresses, which gridproxy adds to interface lo")
		case <-look.C:
		}
	}
}

func existing(addrs []netip.Addr) ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("looking for the addresses of this machine: %w", err)
	}
	var found []netip.Addr
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && slices.Contains(addrs, prefix.Addr()) {
			found = append(found, prefix.Addr())
		}
	}
	return found, nil
}
