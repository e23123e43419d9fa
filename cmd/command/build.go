package command

import (
	"cmp"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"gridproxy/cmd/table"

	"github.com/spf13/cobra"
)

// Build is what a binary knows about itself.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // built from files that differ from the commit
	Time     string `json:"time"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Set by the linker with -X where go build cannot ask a repository: in the build of an image. Never
// written at run time; "" = use what go build knows. A revision ends in dirtySuffix if the files
// differ from it.
var version, revision string

const dirtySuffix = "-dirty"

// ThisBuild returns the Build of the running binary.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info, version, revision)
}

// buildOf returns a Build. It prefers what the linker has set to what go build found.
func buildOf(info *debug.BuildInfo, version, revision string) Build {
	b := Build{
		Version:  cmp.Or(version, info.Main.Version, "(devel)"),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if revision != "" {
		b.Commit, b.Modified = strings.CutSuffix(revision, dirtySuffix)
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	b.Commit = cmp.Or(b.Commit, "unknown")
	return b
}

// WriteTable writes the Build for people.
func (b Build) WriteTable(w io.Writer) error {
	commit := b.Commit
	if b.Modified {
		commit += " (modified)"
	}
	t := table.Table{Rows: [][]string{
		{"Version:", b.Version}, {"Commit:", commit}, {"Time:", cmp.Or(b.Time, "unknown")}, {"Go:", b.Go}, {"Platform:", b.Platform},
	}}
	return t.Write(w)
}

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
