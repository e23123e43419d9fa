package main

import (
	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

// newVersion returns the subcommand version, which prints all formats.
func newVersion(std command.Stdio) *cobra.Command {
	o := new(options.Defaults())
	cmd := command.NewVersion(std)
	cmd.RunE = func(*cobra.Command, []string) error { return printVersion(std, o.Output) }
	o.AddOutput(cmd.Flags())
	return cmd
}

func printVersion(std command.Stdio, format string) error {
	b := command.ThisBuild()
	return command.PrintAs(std.Out, format, b, b.WriteTable)
}
