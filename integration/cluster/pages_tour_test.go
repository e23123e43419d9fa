package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/document"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/wait"
)

// tour is a reader who types every command of a page, in its order, into one shell.
type tour struct {
	t       *testing.T
	session *document.Session
	cluster *machines.Cluster // nil on a laptop
	values  *strings.Replacer // the names in the table
}

// clusterFrom are the pages that a newcomer follows, with the heading from which on they are about
// a cluster.
func clusterFrom() map[string]string {
	return map[string]string{"README.md": "Install", "docs/getting-started.md": "Create the cluster without kube-proxy"}
}

// stepTime is how long one command may take: make demo and make build compile everything the first
// time.
const stepTime = 10 * time.Minute

// cloned is a new clone of this repository, with what is changed and not committed yet. Files that
// git does not know are not in it, as they are not in a newcomer's.
func cloned(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "gridproxy")
	top, err := filepath.Abs(source)
	must(t, err)
	patch := dir + ".patch"
	script := `git clone --quiet "$1" "$2" && git -C "$1" diff --binary HEAD > "$3" && { [ ! -s "$3" ] || git -C "$2" apply "$3"; }`
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", top, dir, patch).CombinedOutput(); err != nil {
		t.Fatalf("cloning the repository: %v\n%s", err, out)
	}
	return dir
}

// parts are the commands of a page for a laptop, and those for a cluster.
func parts(t *testing.T, clone, page string) (laptop, onCluster []document.Example) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(clone, page))
	must(t, err)
	all, err := document.Parse(string(text)).Examples()
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	from := slices.IndexFunc(all, func(e document.Example) bool { return e.Heading == clusterFrom()[page] })
	if from < 1 {
		t.Fatalf("%s has no commands below %q, or none before it", page, clusterFrom()[page])
	}
	return all[:from], all[from:]
}

// follow types the commands of a block, and compares what they print with what the page shows.
// Those that may be repeated are, until all of that is right.
func (r *tour) follow(page string, e document.Example) {
	r.t.Helper()
	outputs, done := make([]string, len(e.Commands)), make([]bool, len(e.Commands))
	how, repeat := document.Exact, false
	for _, c := range e.Commands {
		for _, d := range about(c) {
			how, repeat = max(how, d.output), repeat || d.repeat
		}
	}
	attempt := func() error {
		shown := len(e.Output) > 0
		for i, c := range e.Commands {
			if all := about(c); slices.ContainsFunc(all, func(d deviation) bool { return d.skipped }) {
				r.t.Logf("%s:%d: %q is not run: %s", page, c.Line, c.Text, all[0].why)
				shown = shown && i < len(e.Commands)-1
				continue
			}
			if again := slices.ContainsFunc(about(c), func(d deviation) bool { return d.repeat }); done[i] && !again {
				continue
			}
			var err error
			if outputs[i], err = r.types(c); err != nil {
				return fmt.Errorf("%s:%d: %w", page, c.Line, err)
			}
			done[i] = true
		}
		if !shown {
			return nil
		}
		if err := document.Compare(how, e.Output, strings.Join(outputs, "")); err != nil {
			return fmt.Errorf("%s:%d: %w", page, e.Commands[0].Line, err)
		}
		return nil
	}
	if repeat {
		wait.Until(r.t, "the output is the page's", attempt)
	} else if err := attempt(); err != nil {
		r.t.Fatal(err)
	}
}

func about(c document.Command) []deviation {
	return slices.DeleteFunc(deviations(), func(d deviation) bool {
		return !strings.HasPrefix(c.Text, d.command) || d.replace[0] != "" && !strings.Contains(c.Text, d.replace[0])
	})
}

func (r *tour) types(c document.Command) (output string, err error) {
	r.t.Helper()
	text, machine, never := c.Text, "", ""
	for _, d := range about(c) {
		if d.replace[0] != "" {
			text = strings.ReplaceAll(text, d.replace[0], r.values.Replace(d.replace[1]))
		}
		machine, never = max(machine, d.machine), max(never, d.never)
	}
	begin, code := time.Now(), 0
	if machine != "" {
		out, err := r.cluster.Machine(machine).Run(r.t.Context(), nil, "sh", "-c", text)
		if err != nil {
			return string(out), err
		}
		output = string(out)
	} else {
		output, code = r.session.Type(text)
	}
	first, _, _ := strings.Cut(text, "\n")
	r.t.Logf("%5.1fs  %s", time.Since(begin).Seconds(), first)
	switch {
	case code != 0:
		return output, fmt.Errorf("exit code %d of %s\n%s", code, text, output)
	case never != "" && strings.Contains(output, never):
		return output, fmt.Errorf("%s prints %q:\n%s", text, never, output)
	}
	return output, nil
}
