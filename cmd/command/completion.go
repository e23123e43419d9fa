package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gridproxy/topology/excerpt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newCompletion(std Stdio) *cobra.Command {
	names := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion " + strings.Join(names, "|"),
		Short: "Print a completion script for a shell",
		Long: `Print the script with which a shell completes the commands, flags and names of this program. Names of
Services, Nodes and Grids are read from the manifests or the cluster that the command line names, for
at most ` + completionTimeout.String() + `, at most ` + fmt.Sprint(completionsMax) + ` names. The script for bash needs the package bash-completion.
`,
		Example: `  source <(PROGRAM completion bash)
  PROGRAM completion zsh > "${fpath[1]}/_PROGRAM"
  PROGRAM completion fish > ~/.config/fish/completions/PROGRAM.fish`,
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments: want the name of one shell: %s", len(args), strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var text bytes.Buffer
			var err error
			switch root := cmd.Root(); args[0] {
			case "bash":
				err = root.GenBashCompletionV2(&text, true)
			case "zsh":
				err = root.GenZshCompletion(&text)
			case "fish":
				err = root.GenFishCompletion(&text, true)
			default:
				return NewUsageError(fmt.Errorf("shell %s: want one of %s", excerpt.Quoted(args[0]), strings.Join(names, ", ")))
			}
			if err != nil {
				return fmt.Errorf("writing the completion script for %s: %w", args[0], err)
			}
			return Flush(std.Out, text.Bytes())
		},
	}
}

// completeFlags lets a shell complete words and files for the flags of cmd and its subcommands.
func completeFlags(cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if _, known := cmd.GetFlagCompletionFunc(f.Name); known {
			return
		}
		var function cobra.CompletionFunc
		argument, _ := pflag.UnquoteUsage(f)
		if v, ok := f.Value.(interface{ Words() []string }); ok && len(v.Words()) > 0 {
			function = cobra.FixedCompletions(v.Words(), cobra.ShellCompDirectiveNoFileComp)
		} else if namesFile(argument) {
			function = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		}
		if function != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, function) // fails only for a flag that has one
		}
	}
	cmd.Flags().VisitAll(complete)
	cmd.PersistentFlags().VisitAll(complete)
	for _, child := range cmd.Commands() {
		completeFlags(child)
	}
}

// namesFile reports whether the argument of a flag, by its name in the help, is a path.
func namesFile(argument string) bool {
	return slices.ContainsFunc(strings.Split(argument, "|"), func(word string) bool {
		return word == "FILE" || word == "DIR" || word == "PATH"
	})
}
