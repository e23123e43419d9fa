package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"gridproxy/topology/similar"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Stdio is where a command reads and writes.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs a program with the arguments and streams of the process, and exits with its code.
// SIGINT and SIGTERM end the context of its commands. If a command has not returned after
// limit, the process exits with code Failure. A limit of 0 means none.
func Main(program func(Stdio) *cobra.Command, limit time.Duration) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	std := Stdio{os.Stdin, os.Stdout, os.Stderr}
	release := func() {}
	if limit > 0 {
		release = endAfter(ctx, limit, func() {
			fmt.Fprintf(std.Err, "error: did not end within %s of the signal; exiting without waiting any longer\n", limit)
			os.Exit(Failure)
		})
	}
	code := Run(ctx, program, os.Args[1:], std)
	release()
	stop()
	os.Exit(code)
}

// withSuggestion returns the text of an error with cobra's suggestions as a part of the
// sentence. cobra writes them on lines of their own.
func withSuggestion(text string) string {
	problem, names, found := strings.Cut(text, "\n\nDid you mean this?\n")
	if !found {
		return text
	}
	return problem + "; did you mean " + strings.Join(strings.Fields(names), " or ") + "?"
}

// withFlagSuggestion adds to the error of an unknown flag the flags that may have been meant,
// or what to write here for SuperEdge's flag of that name. It returns other errors unchanged.
func withFlagSuggestion(cmd *cobra.Command, err error) error {
	if answered := withSuperEdgeFlag(cmd, err); answered != nil {
		return answered
	}
	unknown := new(pflag.NotExistError)
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Deprecated == "" {
			names = append(names, f.Name)
		}
	})
	near := similar.Names(unknown.GetSpecifiedName(), names)
	if len(near) == 0 {
		return err
	}
	return fmt.Errorf("%w; did you mean --%s?", err, strings.Join(near, " or --"))
}

// Run does what Main does, with parameters in place of the process. It returns the exit code.
func Run(ctx context.Context, program func(Stdio) *cobra.Command, args []string, std Stdio) int {
	var begun bool // a command's own code was reached: the command line is well formed
	root := program(std)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = ThisBuild().Version                                        // makes --version
	root.CompletionOptions = cobra.CompletionOptions{DisableDefaultCmd: true} // newCompletion is ours
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.AddCommand(newCompletion(std))
	completeFlags(root)
	describeExitCodes(root)
	root.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	root.SetFlagErrorFunc(withFlagSuggestion)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return OK
	}
	if text := strings.TrimRight(withSuggestion(err.Error()), "\n"); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(std.Err, "error: %s\n", line)
		}
	}
	code := codeOf(err, begun)
	if code == Usage {
		fmt.Fprintf(std.Err, "See '%s --help'.\n", cmd.CommandPath())
	}
	return code
}

// NoArgs rejects arguments that are not flags.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: this command takes flags only", args[0])
	}
	return nil
}
