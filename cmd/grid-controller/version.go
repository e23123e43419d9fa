package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newVersion(std stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Long:  "Print what this binary was built from.\n" + exitCodes,
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			t := tabwriter.NewWriter(std.out, 0, 8, 2, ' ', 0)
			fmt.Fprintf(t, "Version:\t%s\nCommit:\t%s\nTime:\t%s\nGo:\t%s\nPlatform:\t%s/%s\n",
				b.version, b.commit, b.time, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return t.Flush()
		},
	}
}

// build is what the binary knows about itself.
type build struct{ version, commit, time string }

func thisBuild() build {
	b := build{"(devel)", "unknown", "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.version = cmp.Or(info.Main.Version, b.version)
	modified := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				modified = " (modified)"
			}
		}
	}
	b.commit += modified
	return b
}
