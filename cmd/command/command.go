package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
// SIGINT and SIGTERM end the context of its commands. If a command has not returned when limit
// has passed since the signal, the process exits with code Failure. A limit of 0 means none.
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
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
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

// Run runs a program as Main does, but without signals and limit, and returns the exit code.
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

// endAfter returns immediately. end is called when limit has passed since ctx ended, unless
// release is called before. Call release once.
func endAfter(ctx context.Context, limit time.Duration, end func()) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(limit):
			end()
		}
	})
	return func() {
		stop()
		close(done)
	}
}

// IgnoreHangup keeps the process alive on SIGHUP until ctx ends, and logs that the signal is
// ignored. Nothing has to be read again: sources are watched, and flags are valid until the next
// start. Otherwise a closed terminal, or a tool that means "read your configuration again", would
// end a daemon.
func IgnoreHangup(ctx context.Context, log *slog.Logger) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				log.Info("SIGHUP is ignored: sources are watched; restart to change flags")
			}
		}
	}()
}

// NewLog makes a daemon's log in format "text" or "json". Verbosity v shows slog levels down
// to -v, which is where logr puts its V(v): 4 is slog's debug level.
func NewLog(w io.Writer, format string, verbosity int) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
