package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

// build is what the binary knows about itself.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // built from files that differ from the commit
	Time     string `json:"time"`     // of the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(std stdio) *cobra.Command {
	o := new(options.Defaults())
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Long:  "Print what this binary was built from.\n" + exitCodes,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			return printAs(std.out, o.Output, b, b.writeTable)
		},
	}
	o.AddOutput(cmd.Flags())
	return cmd
}

func thisBuild() build {
	b := build{Version: "(devel)", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(info.Main.Version, b.Version)
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
	return b
}

func (b build) writeTable(w io.Writer) error {
	commit := b.Commit
	if b.Modified {
		commit += " (modified)"
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "Version:\t%s\nCommit:\t%s\nTime:\t%s\nGo:\t%s\nPlatform:\t%s\n", b.Version, commit, cmp.Or(b.Time, "unknown"), b.Go, b.Platform)
	return t.Flush()
}
