package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"strings"

	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	"golang.org/x/sys/unix"
)

// Prepare does those steps of a start of the daemon that need more than the capabilities
// NET_ADMIN and NET_RAW: modules and sysctls of IPVS in mode ipvs, then the guard of loopback
// addresses, the sysctls of connection tracking and, last, the routing of loopback addresses.
// Beside another proxy it changes nothing.
//
// A setting that the daemon can do without is a warning here too. It is an error if this
// container lacks the privilege, because privilege is its only purpose. A path in the flags
// that the daemon could not read is an error before anything is changed.
func Prepare(ctx context.Context, o options.Options, in io.Reader, log *slog.Logger) error {
	setGCPercent(gcPercentStarting)
	if err := checkSource(o, in, log); err != nil && !startsFromDisk(o, log) {
		return fmt.Errorf("--init-only has changed nothing, because the daemon would not start with these flags: %w", err)
	}
	if o.Beside() {
		log.Info("nothing to prepare: with --shadow or --service-proxy-name the other proxy decides the settings of this machine")
		return nil
	}
	here, err := host.Read()
	if err != nil {
		return err
	}
	kernel, err := driver.New(ctx, o, log)
	if err != nil {
		return err
	}
	want := nodePortsOf(here, o)
	guarded := kernel.Guard.Closed()
	if want.NodePorts.Localhost && guarded[rules.IPv4].LeftOut == nil {
		err = kernel.Guard.Guard(ctx) // writing its rule also loads the module that has the sysctls
	}
	failed := host.Machine{Log: log}.Apply(ctx, sysctls(o.Conntrack))
	for _, w := range failed {
		log.Warn(w.Error())
	}
	loopback := loopbackObserver{log: log, route: func() error {
		err := routeLocalnet(kernel.Guard, false, log)
		if err != nil {
			failed = append(failed, err)
		}
		return err
	}}
	if err != nil {
		guarded[rules.IPv4].Err = err
	}
	loopback.Synced(syncer.Result{Ruleset: want, Changes: rules.Changes{Families: guarded}})
	if err := errors.Join(err, readOnly(failed)); err != nil {
		return err
	}
	if len(failed) > 0 {
		log.Warn("this machine is prepared but for the settings above; the daemon works without them", "settings", len(failed))
		return nil
	}
	log.Info("this machine is prepared; the daemon needs only the capabilities NET_ADMIN and NET_RAW")
	return nil
}

// startsFromDisk reports whether a saved state lets the daemon start without its source.
func startsFromDisk(o options.Options, log *slog.Logger) bool {
	store := stateOf(o)
	if store == nil {
		return false
	}
	_, ok := loadFrom(store, log)
	return ok
}

// nodePortsOf returns the rules of a node without Services. They show whether NodePorts answer on
// loopback before any Service is read. The unspecified address stands for the Node object's IPv4
// address, which is not known here and is no loopback address.
func nodePortsOf(here topology.Host, o options.Options) rules.Ruleset {
	self := topology.NodeFacts{HostAddrs: here.Addrs, IPs: []netip.Addr{netip.IPv4Unspecified()}}
	return rules.Compile(topology.View{Self: self}, o.Rules())
}

// routeLocalnet lets this machine route loopback addresses, if they are guarded. Beside another
// proxy, which decides about it, it only checks. The error says why they are not routed.
func routeLocalnet(guard driver.Guard, beside bool, log *slog.Logger) error {
	if err := guard.CanGuard(); err != nil {
		return err
	}
	machine := host.Machine{Log: log}
	if !beside {
		return machine.RouteLocalnet()
	}
	if !machine.LocalnetRouted() {
		return errors.New("sysctl net.ipv4.conf.all.route_localnet is not 1, and with --service-proxy-name the other proxy decides it; let that proxy answer NodePorts there, or start with --iptables-localhost-nodeports=false")
	}
	return nil
}

// readOnly returns an error if a setting failed because /proc/sys is read-only, and nil
// otherwise. Every privileged container can write to /proc/sys, but some cannot write to /sys.
func readOnly(failed []error) error {
	var denied []error
	for _, err := range failed {
		var file *fs.PathError
		if errors.As(err, &file) && errors.Is(file, unix.EROFS) && strings.HasPrefix(file.Path, "/proc/sys/") {
			denied = append(denied, err)
		}
	}
	if len(denied) == 0 {
		return nil
	}
	return fmt.Errorf("--init-only: %d settings are wrong and read-only here; run it in a privileged container (securityContext.privileged: true): %w", len(denied), denied[0])
}
