package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/topology"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newCleanup(std command.Stdio) *cobra.Command {
	var o *options.Options
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove our rules, and kube-proxy's, from this machine",
		Long: `Remove the chains that gridproxy and kube-proxy write, and the jumps to them, from this
machine: both families, and both variants of iptables where they are installed. Of mode ipvs,
remove the virtual servers, with the connections through them, the sets and link kube-ipvs0.
With the daemon's --ipvs-exclude-cidrs, virtual servers there that only kube-proxy's sets list stay.
KUBE-FIREWALL, the kubelet's chains and everybody else's rules and virtual servers stay as they
are. Services do not work on this node afterwards. Running it again changes nothing.

With --service-proxy-name only what a daemon with that flag has written is removed: chains whose
names begin with GRID-, and the jumps to them. Without the flag these go too. In the container of a
daemon that runs beside another proxy, with that flag or --shadow, it refuses to remove that one's.

The daemon never does this by itself: its rules stay in force when it ends.
` + command.ExitCodes,
		Args: command.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := besideAnother(*o, daemonFlags("/proc/1/cmdline")); err != nil {
			return err
		}
		log := slog.New(slog.NewTextHandler(std.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
		kernel, err := newCleaner(cmd.Context(), *o, log)
		if err != nil {
			return err
		}
		if err := kernel.Cleanup(cmd.Context()); err != nil {
			return fmt.Errorf("removing our rules: %w", err)
		}
		return flush(std.Out, []byte(cleaned(*o)))
	}
	o = addOptions(cmd, warnTo(std.Err), options.GroupKernel)
	cmd.Flags().Lookup("service-proxy-name").Hidden = false
	return cmd
}

// besideAnother is an error where a daemon with these flags is process 1 and what o would remove is
// in use by the proxy beside that daemon.
func besideAnother(o options.Options, daemon []string) error {
	if o.ServiceProxyName != "" {
		return nil
	}
	theirs := options.Defaults()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	theirs.AddFlags(flags)
	if err := flags.Parse(daemon); err != nil {
		return fmt.Errorf("reading the flags of process 1, to know whether another proxy is beside it: %w; run gridproxy cleanup elsewhere", err)
	}
	switch {
	case theirs.ServiceProxyName != "":
		return command.NewUsageError(fmt.Errorf("process 1 has --service-proxy-name %[1]s: the rules of the proxy beside it would go too; give --service-proxy-name %[1]s, which removes the trial's alone", theirs.ServiceProxyName))
	case theirs.Shadow || o.Shadow:
		return command.NewUsageError(errors.New("--shadow: a shadow has written nothing, and the rules of the proxy that serves this node would go; where that is meant, run gridproxy cleanup without this flag outside of a shadow's container"))
	default:
		return nil
	}
}

func cleaned(o options.Options) string {
	if o.ServiceProxyName != "" {
		return "chains whose names begin with " + o.Names().Prefix() + " and the jumps to them are gone from filter and nat; all others are as they were\n"
	}
	return "our chains and jumps are gone from filter and nat; so are our virtual servers, sets and link, if there were any\n"
}

// newCleaner makes a Backend that cleans up after both modes, whatever mode the options say.
func newCleaner(ctx context.Context, o options.Options, log *slog.Logger) (rules.Backend, error) {
	tables, err := newTables(ctx, o, topology.Host{IPv4: true, IPv6: true}, log)
	if err != nil {
		return nil, err
	}
	config, ours := serversConfig(o, tables, log)
	if !ours {
		return tables, nil
	}
	config.Retire = true
	servers, err := ipvs.New(ctx, config)
	if err != nil {
		log.Warn("what mode ipvs has left, if anything, stays", "err", err)
		return tables, nil
	}
	return servers, nil
}
