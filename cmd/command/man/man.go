package man

import (
	"fmt"
	"os"
	"strings"
	"time"

	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// New makes the command man, which is for those who package the program.
func New(std command.Stdio) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a man page for each command into a folder",
		Long:   "Write a man page for each command into a folder, which is made if it is missing.\n",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments: want one folder", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if err := writeManPages(root, args[0], command.ThisBuild()); err != nil {
				return fmt.Errorf("writing man pages into %s: %w", args[0], err)
			}
			_, err := fmt.Fprintf(std.Out, "man -l %s/%s.1 shows the first of them\n", strings.TrimRight(args[0], "/"), strings.ReplaceAll(root.CommandPath(), " ", "-"))
			return err
		},
	}
}

// writeManPages writes into dir, which it makes, a page for each visible command. It changes
// the texts of the commands to markdown. Two builds of one commit write the same pages.
func writeManPages(root *cobra.Command, dir string, b command.Build) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for every reader of man pages
		return err
	}
	changed, err := time.Parse(time.RFC3339, b.Time)
	if err != nil {
		changed = time.Unix(0, 0) // of no commit; the present time would differ from build to build
	}
	changed = changed.UTC()
	root.InitDefaultVersionFlag() // as when it runs
	toMarkdown(root)
	return doc.GenManTreeFromOpts(root, doc.GenManTreeOptions{
		Header:           &doc.GenManHeader{Section: "1", Date: &changed, Source: root.Name() + " " + b.Version},
		Path:             dir,
		CommandSeparator: "-",
	})
}

func toMarkdown(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Long = markdown(cmd.Long)
	for _, child := range cmd.Commands() {
		toMarkdown(child)
	}
}

// markdown returns a help text as markdown: indented lines stay lines, and no other character
// is markup.
func markdown(help string) string {
	escape := strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "#", `\#`)
	var b strings.Builder
	before := false // the line before is an indented one
	for line := range strings.SplitSeq(help, "\n") {
		indented := strings.HasPrefix(line, "  ")
		if indented != before && line != "" {
			b.WriteString("\n")
		}
		if indented {
			b.WriteString("  " + line) // four spaces: as it is
		} else {
			b.WriteString(escape.Replace(line))
		}
		b.WriteString("\n")
		before = indented
	}
	return b.String()
}
