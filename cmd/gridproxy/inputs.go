package main

import (
	"fmt"
	"io"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

// inputs is where a command gets its options from: its flags, those of the running daemon, and the
// file behind --config.
type inputs struct {
	options.Options
	warn   func(string)
	adopt  *adoption // nil = the flags of the running daemon are never taken
	stderr io.Writer // is told whose flags they are; not needed without adopt

	adopted bool // the flags are those of the running daemon
}

// declare adds the flags to a command, and shows some groups of them in its help.
func (in *inputs) declare(cmd *cobra.Command, show ...options.Group) {
	in.Options = options.Defaults()
	in.AddFlags(cmd.Flags(), show...)
}

// read is the PreRunE of a command: it completes the flags, and checks what no single flag can.
func (in *inputs) read(cmd *cobra.Command, _ []string) error {
	if err := in.adoptFlags(cmd); err != nil {
		return err
	}
	if in.ConfigFile != "" {
		warnings, err := options.ReadConfig(in.ConfigFile, cmd.Flags())
		for _, w := range warnings {
			in.warn(w)
		}
		if err != nil {
			return err
		}
	}
	if err := in.Check(); err != nil {
		return command.NewUsageError(err)
	}
	for _, w := range in.FeatureGates.Warnings() {
		in.warn(w)
	}
	return nil
}

// adoptFlags takes the flags of the running daemon if the command line has none but the command's
// own, and prints from which process they are. The answer then is that daemon's.
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
