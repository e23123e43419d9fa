package main

import (
	"fmt"
	"log/slog"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/topology"

	"github.com/spf13/cobra"
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
names begin with GRID-, and the jumps to them. Without the flag these go too.

The daemon never does this by itself: its rules stay in force when it ends.
` + command.ExitCodes,
		Args: command.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log := slog.New(slog.NewTextHandler(std.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
		kernel, err := newCleaner(*o, log)
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

func cleaned(o options.Options) string {
	if o.ServiceProxyName != "" {
		return "chains whose names begin with " + o.Names().Prefix() + " and the jumps to them are gone from filter and nat; all others are as they were\n"
	}
	return "our chains and jumps are gone from filter and nat; so are our virtual servers, sets and link, if there were any\n"
}

// newCleaner makes a Backend that cleans up after both modes, whatever mode the options say.
func newCleaner(o options.Options, log *slog.Logger) (rules.Backend, error) {
	tables, err := newTables(o, topology.Host{IPv4: true, IPv6: true}, log)
	if err != nil {
		return nil, err
	}
	if o.ServiceProxyName != "" {
		return tables, nil // the servers are those of the proxy beside it
	}
	servers, err := ipvs.New(ipvs.BackendConfig{Config: ipvs.Config{Retire: true, Exclude: o.IPVS.ExcludeCIDRs}, Tables: tables, Log: log})
	if err != nil {
		log.Warn("what mode ipvs has left, if anything, stays", "err", err)
		return tables, nil
	}
	return servers, nil
}
