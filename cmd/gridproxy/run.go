package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/command/klogbridge"
	"gridproxy/cmd/gridproxy/daemon"
	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

const runHelp = `Watch Services, EndpointSlices and Nodes, and keep this node's rules equal to what they ask for,
closure included, until SIGTERM or SIGINT. It then ends within 5 seconds, even during a sync. SIGHUP
is ignored.

Nothing is written before all three have been read. The rules stay in force when the daemon ends,
and while the API server is not available. If manifests become unreadable, the last good rules stay in
force; if they cannot be read at the start, the daemon ends with code 3.

With --proxy-mode ipvs, virtual servers of the kernel take the place of chains wherever possible. If
the kernel lacks a module for it, the daemon ends at the start with code 3. What the other mode has
left is removed once all rules of this mode are written. Open connections are not cut.

With --shadow nothing is written at all: no rule, sysctl, flow, health-check port or Event. What
would be written is compared with the kernel at every change and every --verify-period. Metrics, the
log and gridproxy diff report the difference. Give it other addresses for /healthz and /metrics than
the proxy that serves the node has.

With --state-dir it saves what it enforces, at most once a minute. A start without API server uses
the saved state until that answers: at once on a machine without rules, such as after a reboot, and
after 10 seconds where rules are in force. When the API server is back after 20 seconds or more, it
may not know yet that the site works: of a Service of which at least half of this unit's endpoints
turn not ready then, these are used for --reconnect-grace, or until they are deleted.

With a saved state, a kubeconfig, token or certificate that is missing or wrong at the start is tried
again until it can be read. Without one it ends the daemon at once, since it may be a typing mistake.

Two daemons in one network namespace would undo each other's rules. A second one waits 30 seconds for
the first one to end, and is refused with code 3 then. A lock in /run/gridproxy decides that; where
that folder cannot be written there is a warning, and no lock. --shadow and --service-proxy-name run
beside another daemon.

It answers gridproxy status at the unix socket --status-socket. If another process has this socket,
it is left alone and the daemon works without one.

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
name.

Every flag of kube-proxy 1.36 and 1.37 is accepted but --write-config-to, with the same default but
for --oom-score-adj. Those that have no effect here are not listed below; one that is set is a
warning. As with kube-proxy, --cleanup and --version do something else and exit, and the process ends
with code 3 once the content of --config changes, so that it is started again with the new one. The
rules in the kernel stay in force meanwhile.
`

func newRun(std command.Stdio) *cobra.Command {
	var warnings []string // are logged
	in := &inputs{warn: func(w string) { warnings = append(warnings, w) }}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Keep this node's rules current",
		Long:  runHelp,
		Example: `  gridproxy run --node-name bj-3 --manifests /etc/gridproxy/ --cluster-cidr 10.0.0.0/16
  gridproxy run --config /var/lib/kube-proxy/config.conf --hostname-override "$NODE_NAME"
  gridproxy run --api-servers 192.168.0.10:6443,192.168.0.11:6443 --cluster-cidr 10.244.0.0/16
  gridproxy run --service-proxy-name trial --healthz-bind-address 0.0.0.0:10356 --metrics-bind-address 127.0.0.1:10349`,
		Args: command.NoArgs,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if in.Version {
				return nil // whatever the other flags are
			}
			return in.read(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return runOrInstead(cmd.Context(), in, std, warnings) },
	}
	in.declare(cmd, options.GroupSource, options.GroupRules, options.GroupKernel, options.GroupDaemon)
	return cmd
}

// runOrInstead runs the daemon, or does what a flag of kube-proxy asks for instead.
func runOrInstead(ctx context.Context, in *inputs, std command.Stdio, warnings []string) error {
	switch {
	case in.Version:
		return printVersion(std, options.Defaults().Output)
	case in.Cleanup:
		for _, w := range warnings {
			warnTo(std.Err)(w)
		}
		return cleanUp(ctx, in.Options, cleanupFlags{}, std)
	}
	name, err := nodeName(in.NodeName)
	if err != nil {
		return err
	}
	in.NodeName = name
	if !in.InitOnly { // the daemon that follows warns, too
		warnings = append(warnings, in.DaemonWarnings()...)
	}
	return runDaemon(ctx, in, std, warnings)
}

// nodeName returns given. If that is empty, it falls back to the variable NODE_NAME of the
// DaemonSet, then to the host name as kube-proxy has it: trimmed, in lower case.
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

func runDaemon(ctx context.Context, in *inputs, std command.Stdio, warnings []string) error {
	o := in.Options
	log := command.NewLog(std.Err, o.LogFormat, o.Verbosity)
	command.IgnoreHangup(ctx, log)
	if err := klogbridge.Install(log, o.Verbosity); err != nil {
		return err
	}
	for _, w := range warnings {
		log.Warn(w)
	}
	b := command.ThisBuild()
	log.Info("starting", "version", b.Version, "commit", b.Commit, "node", o.NodeName)
	if o.InitOnly {
		return daemon.Prepare(ctx, o, std.In, log)
	}
	return daemon.Run(ctx, o, std.In, configWatch(in, log), log)
}
