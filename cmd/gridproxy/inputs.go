package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology"
	"gridproxy/topology/regularfile"
	"gridproxy/topology/watch"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// inputs are the options of a command: from its flags, from the running daemon, and from --config.
type inputs struct {
	options.Options
	warn   func(string)
	adopt  *adoption // nil = the flags of the running daemon are never used
	stderr io.Writer // for the line that names the process, and what is waited for

	adopted bool               // the flags are those of the running daemon
	flags   *pflag.FlagSet     // of the command
	given   options.Options    // by flags alone
	config  []byte             // the text of --config
	saved   *topology.Snapshot // of --from-state; nil = the source is another one
}

// declare sets the options to their defaults, and adds their flags to a command. Its help has
// those of the groups in show.
func (in *inputs) declare(cmd *cobra.Command, show ...options.Group) {
	in.Options = options.Defaults()
	in.AddFlags(cmd.Flags(), show...)
	in.completeFlag(cmd, "node-name", nodesPath, func(_, name string) string { return name })
}

// read completes the options from the running daemon, --config and --from-state, checks them,
// and prints warnings. It serves as PreRunE of a command.
func (in *inputs) read(cmd *cobra.Command, _ []string) error {
	node, err := checkFromState(cmd.Flags())
	if err != nil {
		return err
	}
	if err := in.adoptFlags(cmd); err != nil {
		return err
	}
	in.flags, in.given = cmd.Flags(), in.Options
	if in.ConfigFile != "" {
		text, err := options.ConfigText(in.ConfigFile)
		if err != nil {
			return err
		}
		in.config = text
		warnings, err := options.SetConfig(in.ConfigFile, text, cmd.Flags())
		in.warnAll(warnings)
		if err != nil {
			return err
		}
	}
	if in.FromState != "" {
		if err := in.readState(node); err != nil {
			return err
		}
	}
	if err := in.Check(); err != nil {
		return command.NewUsageError(err)
	}
	in.warnAll(in.Warnings())
	return nil
}

func (in *inputs) warnAll(warnings []string) {
	for _, w := range warnings {
		in.warn(w)
	}
}

// adoptFlags takes over the flags of the running daemon if the command line has only flags of
// the command itself. It then sets in.adopted, and prints from which process they are.
func (in *inputs) adoptFlags(cmd *cobra.Command) error {
	if in.adopt == nil {
		return nil
	}
	daemon, err := in.adopt.from(cmd.Flags(), procDir, in.warn)
	if err != nil {
		return err
	}
	if in.adopted = daemon.process != 0; in.adopted {
		fmt.Fprintf(in.stderr, "Flags: from process %d\n", daemon.process)
	}
	return nil
}

// configWatch returns how to watch the file of --config. It returns nil without --config, or if it
// is a pipe, which cannot be read again.
func configWatch(in *inputs, log *slog.Logger) *watch.FileConfig {
	if in.ConfigFile == "" {
		return nil
	}
	if info, err := os.Stat(in.ConfigFile); err == nil && regularfile.Check(info) != nil {
		log.Info("--config is no regular file, so that a change of it is not noticed", "file", in.ConfigFile)
		return nil
	}
	return &watch.FileConfig{
		Path: in.ConfigFile, Text: in.config,
		Read:   func() ([]byte, error) { return regularfile.Read(in.ConfigFile, options.ConfigMax) },
		Accept: in.acceptConfig,
		Report: func(err error) {
			if err == nil {
				log.Info("--config can be read again, and has not changed", "file", in.ConfigFile)
				return
			}
			log.Warn("--config cannot be watched well; what was read at the start stays in force", "file", in.ConfigFile, "err", err)
		},
	}
}

// acceptConfig returns an error if this daemon would not start with this text of --config. One
// mistake in a ConfigMap must not end the daemons of all Nodes that read it.
func (in *inputs) acceptConfig(text []byte) error {
	o := in.given
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	in.flags.Visit(func(given *pflag.Flag) {
		if f := flags.Lookup(given.Name); f != nil {
			f.Changed = true // so that it wins over its field
		}
	})
	_, err := options.SetConfig(in.ConfigFile, text, flags)
	if err == nil {
		err = o.Check()
	}
	if err != nil {
		return fmt.Errorf("its new content would be refused at the start, so this process goes on with the old one; correct the file: %w", err)
	}
	return nil
}
