package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/localdns"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/host"

	"github.com/spf13/cobra"
)

// cleanupFlags are those of cleanup alone.
type cleanupFlags struct{ restore, dryRun bool }

func newCleanup(std command.Stdio) *cobra.Command {
	in := &inputs{warn: warnTo(std.Err)}
	var flags cleanupFlags
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove our rules, and kube-proxy's, from this machine",
		Long: `Remove the chains that gridproxy and kube-proxy write, and the jumps to them, from this
machine: both families, and both variants of iptables where they are installed. Of mode ipvs,
remove the virtual servers, with the connections through them, the sets and link kube-ipvs0.
With the daemon's --ipvs-exclude-cidrs, virtual servers there that only kube-proxy's sets list stay.
KUBE-FIREWALL, the kubelet's chains and the rules and virtual servers of other programs stay.
Services do not work on this node afterwards. Running it again changes nothing.

It prints how many chains, rules, virtual servers, addresses and sets it has removed, and where. The
last line names what is left on purpose, which is KUBE-FIREWALL, and why. With --dry-run it prints
what it would remove, and changes nothing. A daemon may run meanwhile.

The kernel is read back afterwards. The command fails if anything is left, or comes back at once
because kube-proxy or gridproxy still runs. It also fails if a table with such chains cannot be read,
for example because it holds native nftables rules. A chain or set stays if a rule of another program
needs it: a warning names it.

With --service-proxy-name only the rules of a daemon with that flag are removed: chains whose names
begin with GRID-, and the jumps to them. Without the flag these are removed too. In the container of a
daemon with that flag or --shadow, it refuses to remove the rules of the proxy beside that daemon.

With --sysctls the settings that a daemon changed (sysctls, the size of the connection tracking table)
are restored to the values recorded in /run/gridproxy since the last boot. A setting that another
program has changed since then is left as it is. Stop the daemon first.

The daemon never does this automatically: its rules stay in force when it ends.`,
		Args:    command.NoArgs,
		PreRunE: in.read,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if flags.restore && in.ServiceProxyName != "" {
			return command.NewUsageError(errors.New("--sysctls and --service-proxy-name: a trial changes no setting; the other proxy decides those of this machine"))
		}
		return cleanUp(cmd.Context(), in.Options, flags, std)
	}
	in.declare(cmd, options.GroupKernel)
	cmd.Flags().Lookup("service-proxy-name").Hidden = false
	cmd.Flags().BoolVar(&flags.restore, "sysctls", false, "also restore the settings of this machine that a daemon changed")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "only say what would be removed and restored")
	return cmd
}

// cleanUp removes our rules and kube-proxy's, restores settings if the flags ask for it, and
// prints what it did. It returns an error, and changes nothing, if it would remove the rules of
// a proxy beside a daemon of this container.
func cleanUp(ctx context.Context, o options.Options, flags cleanupFlags, std command.Stdio) error {
	if o.Shadow && o.ServiceProxyName == "" {
		return errShadowCleanup()
	}
	for _, daemon := range runningDaemons(procDir) {
		if err := besideAnother(o, daemon); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(std.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	removal := rules.Removal{DryRun: flags.dryRun}
	err := driver.NewCleaner(ctx, o, &removal, log).Cleanup(ctx)
	if o.ServiceProxyName == "" {
		err = errors.Join(err, localdns.Remove(o.DNS, &removal)) // after the rules that name its sets
	}
	text := describeRemoval(removal)
	switch {
	case err != nil:
		if len(removal.Items) == 0 {
			text = "" // something may be there
		}
		err = fmt.Errorf("removing our rules: %w", err)
		if os.Geteuid() != 0 {
			err = errors.Join(errors.New("not root: run this as root, or with the capabilities NET_ADMIN and NET_RAW, if that is the cause"), err)
		}
	case !flags.dryRun && len(removal.Items) > 0:
		text += driver.Cleaned(o)
	}
	err = errors.Join(err, command.Flush(std.Out, []byte(text)))
	cleaned := err == nil
	if flags.restore {
		err = errors.Join(err, restoreSettings(std, flags.dryRun))
	}
	if cleaned && !flags.dryRun {
		err = errors.Join(err, command.Flush(std.Out, []byte(driver.DescribeFirewall(o, removal))))
	}
	return err
}

// describeRemoval returns a line for each place where something was removed, or would be. If
// there is no such place, it returns a line that says so.
func describeRemoval(r rules.Removal) string {
	if len(r.Items) == 0 {
		return "nothing to remove: nothing of gridproxy or kube-proxy is here\n"
	}
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	var b strings.Builder
	last := ""
	for _, item := range r.Items {
		switch {
		case item.Where == last:
			b.WriteString(", ")
		case last != "":
			b.WriteString("\n")
		}
		if item.Where != last {
			fmt.Fprintf(&b, "%s: %s: ", item.Where, verb)
			last = item.Where
		}
		fmt.Fprintf(&b, "%d %s", item.Count, item.What)
	}
	return b.String() + "\n"
}

// besideAnother returns an error if the daemon runs beside another proxy, whose rules a cleanup
// with these options would remove, or if the daemon's flags cannot be parsed.
func besideAnother(o options.Options, daemon runningDaemon) error {
	if o.ServiceProxyName != "" {
		return nil
	}
	theirs, err := optionsOf(daemon.flags)
	if err != nil {
		return fmt.Errorf("reading the flags of process %d, to find out whether another proxy runs beside it: %w; run gridproxy cleanup outside of its container", daemon.process, err)
	}
	switch {
	case theirs.ServiceProxyName != "":
		return command.NewUsageError(fmt.Errorf("process %[2]d has --service-proxy-name %[1]s: the rules of the proxy beside it would be removed too; give --service-proxy-name %[1]s, which removes only those of the trial", theirs.ServiceProxyName, daemon.process))
	case theirs.Shadow || o.Shadow:
		return errShadowCleanup()
	default:
		return nil
	}
}

func errShadowCleanup() error {
	return command.NewUsageError(errors.New("--shadow: a shadow has written nothing, and the rules of the proxy that serves this node would be removed; if you want that, run gridproxy cleanup without this flag outside of the shadow's container"))
}

// restoreSettings restores the settings that a daemon changed, and prints the result for each
// of them. With dryRun it only prints what it would do.
func restoreSettings(std command.Stdio, dryRun bool) error {
	restore, would := host.Machine{}.Restore, ""
	if dryRun {
		restore, would = host.Machine{}.Restorable, "would restore "
	}
	all, err := restore()
	var text strings.Builder
	for _, r := range all {
		if r.Done {
			fmt.Fprintf(&text, "%s%s: %d -> %d\n", would, r, r.Have, r.Old)
		} else {
			fmt.Fprintf(&text, "%s: left at %d, which another program has set; gridproxy changed it from %d to %d\n", r, r.Have, r.Old, r.New)
		}
	}
	if len(all) == 0 && err == nil {
		if _, missing := os.Stat(host.RecordDir); missing != nil {
			fmt.Fprintf(&text, "there is no %s here: no setting was changed since the last boot, or this container does not have the folder; "+
				"in that case run gridproxy cleanup --sysctls on the node itself\n", host.RecordDir)
		} else {
			text.WriteString("no change of a setting is recorded here\n")
		}
	}
	return errors.Join(command.Flush(std.Out, []byte(text.String())), err)
}
