package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

// How much the heap may grow between two garbage collections, in percent. Both are far below Go's
// 100, because an edge node has little memory, and a quiet node much processor time. The first run,
// for which traffic waits, has fewer collections. The variable GOGC overrides both.
const (
	gcPercentStarting = 25
	gcPercentSettled  = 10
)

func newRun(std command.Stdio) *cobra.Command {
	var warnings []string // are logged
	in := &inputs{warn: func(w string) { warnings = append(warnings, w) }}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep this node's rules current",
		Long: `Watch Services, EndpointSlices and Nodes, and keep this node's rules equal to what they ask for,
closure included, until SIGTERM or SIGINT. It then ends within 5 seconds, even during a sync. SIGHUP
is ignored: there is no configuration to read again.

Nothing is written before all three have been read. The rules stay in force when the daemon ends,
and while the API server is not available. If manifests become unreadable, the last good rules stay in
force; if they cannot be read at the start, the daemon ends with code 1.

With --proxy-mode ipvs, virtual servers of the kernel take the place of chains wherever possible. If
the kernel lacks a module for it, the daemon ends at the start with code 1. What the other mode has
left is removed once all rules of this mode are written. Open connections are not cut.

With --shadow nothing is written at all: no rule, sysctl, flow, health-check port or Event. What
would be written is compared with the kernel at every change and every --verify-period. Metrics, the
log and gridproxy diff report the difference. Give it other addresses for /healthz and /metrics than
the proxy that serves the node has.

With --init-only it does what needs more than the capabilities NET_ADMIN and NET_RAW, with the same
flags, and exits: sysctls, modules of mode ipvs, and the guard of loopback addresses before they are
routed. A daemon that starts afterwards checks these settings and reports which ones are wrong.

With --service-proxy-name it runs beside kube-proxy: it serves the Services that are labelled with
this name, in chains whose names begin with GRID-. kube-proxy decides the sysctls. Give it other
addresses for /healthz and /metrics too. This is not possible in mode ipvs.

The API server is that of --kubeconfig. In a Pod it is one of --api-servers, tried in order, starting
at an index derived from the node name; its certificate must be for kubernetes.default.svc. Without
either, it is the one in the environment.

The node's name is --node-name, else the environment variable NODE_NAME, else the machine's host
name. Flags that kube-proxy has too have the same names and defaults.
` + command.ExitCodes,
		Example: `  gridproxy run --node-name bj-3 --manifests /etc/gridproxy/ --cluster-cidr 10.0.0.0/16
  gridproxy run --config /var/lib/kube-proxy/config.conf --hostname-override "$NODE_NAME"
  gridproxy run --api-servers 192.168.0.10:6443,192.168.0.11:6443 --cluster-cidr 10.244.0.0/16
  gridproxy run --service-proxy-name trial --healthz-bind-address 0.0.0.0:10356 --metrics-bind-address 127.0.0.1:10349`,
		Args:    command.NoArgs,
		PreRunE: in.read,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := nodeName(in.NodeName)
			if err != nil {
				return err
			}
			in.NodeName = name
			return runDaemon(cmd.Context(), in.Options, std, warnings)
		},
	}
	in.declare(cmd, options.GroupSource, options.GroupRules, options.GroupKernel, options.GroupDaemon)
	return cmd
}

// nodeName falls back to the variable NODE_NAME of the DaemonSet, then to the host name as
// kube-proxy has it: trimmed, in lower case.
func nodeName(given string) (string, error) {
	if name := cmp.Or(given, os.Getenv("NODE_NAME")); name != "" {
		return name, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("asking for this machine's name: %w; give --node-name", err)
	}
	return strings.ToLower(strings.TrimSpace(host)), nil
}

func runDaemon(ctx context.Context, o options.Options, std command.Stdio, warnings []string) error {
	log := command.NewLog(std.Err, o.LogFormat, o.Verbosity)
	command.IgnoreHangup(ctx, log)
	if err := command.BridgeKlog(log, o.Verbosity); err != nil {
		return err
	}
	for _, w := range warnings {
		log.Warn(w)
	}
	setGCPercent(gcPercentStarting)
	b := command.ThisBuild()
	log.Info("starting", "version", b.Version, "commit", b.Commit, "node", o.NodeName)
	if o.InitOnly {
		return prepareNode(ctx, o, std.In, log)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d, err := newDaemon(ctx, o, std.In, log)
	if err != nil && ctx.Err() != nil {
		log.Info("ended during the start; the rules in the kernel stay in force", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	return d.run(ctx, cancel)
}

// setGCPercent does nothing if GOGC is set.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// run starts every part and waits until all have ended. Only an error of the source or of the
// syncer ends the daemon without a signal.
func (d *daemon) run(ctx context.Context, cancel context.CancelFunc) error {
	var parts sync.WaitGroup
	var sourceErr error
	parts.Go(func() {
		if sourceErr = d.source.Run(ctx); sourceErr != nil {
			cancel()
		}
	})
	var syncErr error
	parts.Go(func() {
		if syncErr = d.syncer.Run(ctx); syncErr != nil {
			cancel()
		}
	})
	for _, s := range d.servers {
		parts.Go(func() { s.run(ctx, func(err error) { d.serverFailed(s, err) }) })
	}
	parts.Wait()
	d.log.Info("ended; the rules in the kernel stay in force")
	if sourceErr != nil {
		return sourceErr
	}
	return syncErr
}
