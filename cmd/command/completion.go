package command

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"gridproxy/topology/excerpt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type shell struct {
	name   string
	script func(*cobra.Command, io.Writer) error
}

func shells() []shell {
	return []shell{
		{"bash", func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
		{"zsh", func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) }},
		{"fish", func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
	}
}

func newCompletion(std Stdio) *cobra.Command {
	var names []string
	for _, s := range shells() {
		names = append(names, s.name)
	}
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
			for _, s := range shells() {
				if s.name == args[0] {
					return printScript(std.Out, cmd.Root(), s)
				}
			}
			return NewUsageError(fmt.Errorf("shell %s: want one of %s", excerpt.Quoted(args[0]), strings.Join(names, ", ")))
		},
	}
}

func printScript(w io.Writer, root *cobra.Command, s shell) error {
	var text bytes.Buffer
	if err := s.script(root, &text); err != nil {
		return fmt.Errorf("writing the completion script for %s: %w", s.name, err)
	}
	return Flush(w, text.Bytes())
}

// completeFlags lets a shell complete the values of all flags: words, and the names of files.
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
