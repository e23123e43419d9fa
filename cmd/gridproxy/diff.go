package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

func newDiff(std command.Stdio) *cobra.Command {
	in := &inputs{warn: warnTo(std.Err), stderr: std.Err, adopt: &adoption{own: []string{"wait"}, required: true}}
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Compare this machine's rules with what gridproxy would write",
		Long: `Compare this machine's rules with what gridproxy would write, and print a unified diff for each
chain that differs: from the kernel's rules to the desired ones. Nothing is written. If nothing
differs, standard output is empty, and standard error has the line "no difference".

Comments and packet counters are ignored, and so is the order of rules if it has no effect. Chains of
other programs are not compared; of built-in chains only the jumps to gridproxy's and kube-proxy's
chains are. A chain of theirs that is not desired is shown as removed, or as emptied if a rule of
another program jumps to it. A family that a daemon leaves out because this kernel has no table nat
for it is compared all the same: asking the kernel for the table would create it.

With --proxy-mode ipvs, or if that mode has left something, virtual servers, sets and addresses are
compared too, as ipvsadm, ipset and ip print them. Draining real servers are ignored. Schedulers and
virtual servers that this kernel would refuse are not detected.

In the container of a running daemon no flag is needed: without any flag but --wait, the flags of the
running "gridproxy run" are used, and "Flags: from process N" is printed. The flags of any daemon may
be given as they are. What a running daemon remembers is not known here: a Service whose annotation
cannot be parsed is compared as on a daemon that has just started. A change that the daemon has not
written yet is shown as a difference: --wait gives it time.`,
		Example: `  kubectl -n gridproxy exec ds/gridproxy -- gridproxy diff
  gridproxy diff --config /var/lib/kube-proxy/config.conf --node-name bj-3`,
		Args:    command.NoArgs,
		PreRunE: in.read,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := diffWithin(cmd.Context(), wait, in, std)
			if err == nil {
				err = command.Flush(std.Out, text)
			}
			if err == nil && len(text) > 0 {
				return command.Finding{}
			}
			if err == nil {
				fmt.Fprintln(std.Err, "no difference") // standard output is a diff, for programs
			}
			return err
		},
	}
	in.declare(cmd, options.GroupSource, options.GroupRules, options.GroupKernel)
	cmd.Flags().DurationVar(&wait, "wait", 0, "compare again until nothing differs, for at most this long, also if the kernel cannot be read")
	return cmd
}

// diffWithin compares, and again for at most the duration wait while something differs or the
// kernel cannot be read. It returns the last diff, which is empty if nothing differs.
func diffWithin(ctx context.Context, wait time.Duration, in *inputs, std command.Stdio) ([]byte, error) {
	if wait > 0 && slices.Contains(in.Manifests, "-") {
		return nil, command.NewUsageError(fmt.Errorf("--wait %s and --manifests -: standard input can be read only once; give a file", wait))
	}
	l, err := newDiffRun(ctx, in, std)
	if err != nil {
		return nil, err
	}
	defer l.close()
	text, err := l.compare(ctx)
	again := func() bool { return err == nil && len(text) > 0 || errors.As(err, new(unreadKernelError)) }
	for end := time.Now().Add(wait); again() && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(diffPeriod):
			text, err = l.compare(ctx)
		}
	}
	return text, err
}
