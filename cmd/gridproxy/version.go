package main

import (
	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

func newVersion(std command.Stdio) *cobra.Command {
	o := new(options.Defaults())
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Long:  "Print what this binary was built from.\n" + command.ExitCodes,
		Args:  command.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return printVersion(std, o.Output) },
	}
	o.AddOutput(cmd.Flags())
	return cmd
}

func printVersion(std command.Stdio, format string) error {
	b := command.ThisBuild()
	return command.PrintAs(std.Out, format, b, b.WriteTable)
}
