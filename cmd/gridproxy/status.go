package main

import (
	"context"
	"errors"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/gridproxy/status"

	"github.com/spf13/cobra"
)

func newStatus(std command.Stdio) *cobra.Command {
	o := new(options.Defaults())
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether the daemon of this machine is healthy, and what it does",
		Long: `Show whether the daemon of this machine is healthy, and what it does: the last sync and
verification, the state of each address family, how current the known state of the cluster is, how
many Services are closed, refused or quarantined here, the first three of them with the next command,
and what was repaired.

The daemon is asked at its unix socket, --status-socket, which only its own user may open. No API
server is needed. The daemon answers while a sync hangs, too. In a Pod, run this in the container of
the daemon, or on the node itself.

The exit code is 0 if the daemon is healthy. Otherwise it is 1, and standard error has a line for each
reason: there is no daemon, or it does not answer within 2 seconds; a sync fails or hangs, or a change
waits, for longer than /healthz allows; the API server or the manifests cannot be read for that long;
a Service is quarantined; another proxy writes the same rules.`,
		Example: `  gridproxy status
  kubectl -n gridproxy exec POD -- gridproxy status -o json`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return printStatus(cmd.Context(), *o, std) },
	}
	o.AddStatusSocket(cmd.Flags())
	cmd.Flags().Lookup("status-socket").Usage = "`PATH` of the daemon's unix socket"
	o.AddOutput(cmd.Flags())
	return cmd
}

// printStatus prints the answer of the daemon. A daemon that is not healthy, or does not
// answer, is a command.Finding with a line for each problem.
func printStatus(ctx context.Context, o options.Options, std command.Stdio) error {
	if o.StatusSocket == "" {
		return command.NewUsageError(errors.New(`--status-socket "": want the path of the daemon's socket`))
	}
	s, err := status.Ask(ctx, o.StatusSocket)
	if err != nil {
		return command.Finding{Problems: err} // a daemon that does not answer is not healthy
	}
	if err := command.PrintAs(std.Out, o.Output, s, s.WriteTable); err != nil {
		return err
	}
	problems := s.Problems
	if len(problems) == 0 && !s.Healthy {
		problems = []string{"the daemon says that it is not healthy, and not why"}
	}
	if len(problems) == 0 {
		return nil
	}
	return command.Finding{Problems: errors.New(strings.Join(problems, "\n"))}
}
