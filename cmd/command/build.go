package command

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"
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

// ThisBuild is that of the running binary.
func ThisBuild() Build {
	b := Build{Version: "(devel)", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// WriteTable writes the Build for people.
func (b Build) WriteTable(w io.Writer) error {
	commit := b.Commit
	if b.Modified {
		commit += " (modified)"
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "Version:\t%s\nCommit:\t%s\nTime:\t%s\nGo:\t%s\nPlatform:\t%s\n", b.Version, commit, cmp.Or(b.Time, "unknown"), b.Go, b.Platform)
	return t.Flush()
}
