package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"gridproxy/cmd/grid-controller/expand"
	"gridproxy/cmd/grid-controller/migrate"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// The exit codes of every command but expand --diff, which has diff(1)'s.
const (
	exitOK      = 0
	exitFailure = 1 // wrong input, or something failed
	exitUsage   = 2 // wrong command line
)

const exitCodes = `
Exit codes: 0 done; 1 wrong input, or something failed; 2 wrong command line.`

// stdio is where a command reads and writes.
type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// run is main with everything that it takes from the process handed in.
func run(ctx context.Context, args []string, std stdio) int {
	var begun bool // a command's own code was reached: the command line is well formed
	root := newRoot(std, &begun)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if text := strings.TrimRight(err.Error(), "\n"); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(std.err, "error: %s\n", line)
		}
	}
	code := exitCode(err, begun)
	if code == exitUsage {
		fmt.Fprintf(std.err, "See '%s --help'.\n", cmd.CommandPath())
	}
	return code
}

func exitCode(err error, begun bool) int {
	var usage usageError
	var own expand.Exit
	switch {
	case !begun || errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &own):
		return own.Code
	default:
		return exitFailure
	}
}

// usageError is a command line that is well formed but asks for something impossible.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// noArgs refuses everything that is not a flag.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: this command takes flags only", args[0])
	}
	return nil
}

func newRoot(std stdio, begun *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "grid-controller",
		Short: "Give every NodeUnit the workloads of its Grids",
		Long: `grid-controller expands each DeploymentGrid and StatefulSetGrid into one Deployment or
StatefulSet in every NodeUnit, and each ServiceGrid into one Service that stays inside them.
` + exitCodes,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRun:  func(*cobra.Command, []string) { *begun = true },
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.AddCommand(newRun(std), expand.New(std.in, std.out, std.err), migrate.New(std.out), newVersion(std))
	return root
}
