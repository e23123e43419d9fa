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

// How much the heap may grow between two collections, in percent. A quiet node has plenty of
// processor time and an edge node has little memory, so both are far below Go's 100; the
// first run, for which traffic waits, is spared some collections. The variable GOGC
// overrides both.
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
		Long: `Watch Services, EndpointSlices and Nodes, and keep this node's rules equal to what
they ask for, closure included, until SIGTERM or SIGINT. It then ends within 5 seconds, also while
a sync is under way. SIGHUP is ignored: nothing has to be read again.

Nothing is written before all three have been read. The rules stay when the daemon ends, and
while the API server is away. Manifests that become unreadable leave the last good rules in
force; if they cannot be read at the start, it ends with code 1.

With --proxy-mode ipvs, virtual servers of the kernel take the place of chains wherever they can.
A kernel that lacks a module for it ends the daemon at the start with code 1. What the other
mode has left goes once everything stands in this one, and open connections go on.

With --shadow nothing is written at all: no rule, sysctl, flow, health-check port or Event. What
would be written is compared with what the kernel holds at every change and every --verify-period,
and the difference is told by metrics, by the log, and by gridproxy diff. Give it other addresses
to serve /healthz and /metrics at than the proxy that serves the node has.

With --init-only it does what takes more than the capabilities NET_ADMIN and NET_RAW, with the same
flags, and ends: sysctls, modules of mode ipvs, and before loopback addresses are routed their guard.
A daemon that runs behind it reads these settings and says which ones are wrong.

With --service-proxy-name it runs beside kube-proxy: it serves the Services that are handed to it by
this name, in chains whose names begin with GRID-. Sysctls are left to kube-proxy. Give it other
addresses for /healthz and /metrics too. Mode ipvs cannot do so.

The API server is the one that --kubeconfig names; in a Pod the first of --api-servers that answers,
beginning with one that the node's name picks, whose certificate must be for kubernetes.default.svc;
else the one that the environment names.

The node's name is --node-name, else the environment variable NODE_NAME, else the machine's
host name. Flags that kube-proxy has too are called and preset as there.
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

// nodeName falls back on what the DaemonSet's environment says, then on the host's name as
// kube-proxy does: trimmed, lower case.
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

// setGCPercent leaves GOGC its say.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// run starts every part and waits until all have ended. Only a source that says that going
// on is pointless ends the daemon by itself.
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
