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

	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// The exit codes of every command.
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
	for line := range strings.SplitSeq(strings.TrimRight(err.Error(), "\n"), "\n") {
		fmt.Fprintf(std.err, "error: %s\n", line)
	}
	var usage usageError
	if begun && !errors.As(err, &usage) {
		return exitFailure
	}
	fmt.Fprintf(std.err, "See '%s --help'.\n", cmd.CommandPath())
	return exitUsage
}

// noArgs refuses everything that is not a flag.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: this command takes flags only", args[0])
	}
	return nil
}

// usageError is a command line that is well formed but asks for something impossible.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func newRoot(std stdio, begun *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "gridproxy",
		Short: "Keep the traffic of Services inside this node's NodeUnit",
		Long: `gridproxy writes the rules of Services into the kernel, as kube-proxy does. A Service with
the annotation topologyKeys gets only those endpoints whose node is in this node's unit.
` + exitCodes,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRun:  func(*cobra.Command, []string) { *begun = true },
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.AddCommand(newRun(std), newRender(std), newExplain(std), newCleanup(std), newVersion(std))
	return root
}

// addOptions declares the flags on cmd and, before it runs, reads --config and checks what
// no single flag can. Warnings go to warn, except in run, which logs them.
func addOptions(cmd *cobra.Command, warn func(string), show ...options.Group) *options.Options {
	o := new(options.Defaults())
	o.AddFlags(cmd.Flags(), show...)
	body := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.ConfigFile != "" {
			warnings, err := options.ReadConfig(o.ConfigFile, cmd.Flags())
			for _, w := range warnings {
				warn(w)
			}
			if err != nil {
				return err
			}
		}
		if err := o.Check(); err != nil {
			return usageError{err}
		}
		return body(cmd, args)
	}
	return o
}

// printWarning writes warnings one a line.
func (s stdio) printWarning(text string) {
	fmt.Fprintf(s.err, "warning: %s\n", strings.ReplaceAll(text, "\n", "; "))
}
