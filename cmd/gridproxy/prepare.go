package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	"golang.org/x/sys/unix"
)

// prepareNode does to this machine what a start of the daemon does to it and what takes more
// than the capabilities NET_ADMIN and NET_RAW: in mode ipvs modules and sysctls of IPVS, then
// the guard of loopback addresses, the sysctls of connection tracking and, last, the routing of
// loopback addresses. What the daemon can do without is a warning here too, unless it fails because
// this container is not privileged either: to be so is all that it is there for.
func prepareNode(ctx context.Context, o options.Options, log *slog.Logger) error {
	if o.Shadow {
		log.Info("nothing is to be prepared for --shadow, which writes nothing")
		return nil
	}
	here, err := host.Read()
	if err != nil {
		return err
	}
	kernel, err := newMechanism(o, here, log)
	if err != nil {
		return err
	}
	want := nodePortsOf(here, o)
	if want.NodePorts.Localhost {
		err = kernel.tables.Guard(ctx) // its rule loads what has the sysctls, too
	}
	machine := host.Machine{}
	failed := machine.Apply(sysctls(o.Conntrack))
	for _, w := range failed {
		log.Warn(w.Error())
	}
	loopback := loopbackObserver{log: log, route: func() error {
		err := machine.RouteLocalnet()
		failed = append(failed, err)
		return err
	}}
	loopback.Synced(syncer.Result{Ruleset: want, Err: err})
	if err := errors.Join(err, readOnly(failed)); err != nil {
		return err
	}
	log.Info("this machine is prepared; the daemon needs no more than the capabilities NET_ADMIN and NET_RAW")
	return nil
}

// nodePortsOf is the rules of a node without Services, of which it is known before any is read
// whether NodePorts answer on loopback. The node's own address, which only its Node tells, is
// no such address.
func nodePortsOf(here topology.Host, o options.Options) rules.Ruleset {
	config := o.Rules()
	config.LocalhostNodePorts = config.LocalhostNodePorts && !config.NodePortAddresses.Primary
	return rules.Compile(topology.View{Self: topology.NodeFacts{HostAddrs: here.Addrs}}, config)
}

// readOnly tells of what failed for lack of privilege.
func readOnly(failed []error) error {
	var denied []error
	for _, err := range failed {
		if errors.Is(err, unix.EROFS) {
			denied = append(denied, err)
		}
	}
	if len(denied) == 0 {
		return nil
	}
	return fmt.Errorf("--init-only: %d settings are wrong and may only be read here; run it in a privileged container (securityContext.privileged: true): %w", len(denied), denied[0])
}
