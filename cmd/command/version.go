package command

import "github.com/spf13/cobra"

// NewVersion returns the subcommand version, which prints a table.
func NewVersion(std Stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Long:  "Print what this binary was built from.",
		Args:  NoArgs,
		RunE:  func(*cobra.Command, []string) error { return ThisBuild().WriteTable(std.Out) },
	}
}
