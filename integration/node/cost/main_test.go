package cost

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The environment of a stand-in: where it writes what it saw, and where the real tools are.
const (
	logVariable  = "GRIDPROXY_COST_LOG"
	realVariable = "GRIDPROXY_COST_PATH"
)

func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); slices.Contains(restores(), name) {
		if err := standIn(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// restores are the tools that are counted.
func restores() []string {
	var all []string
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, variant := range []string{"nft", "legacy"} {
			all = append(all, family+"-"+variant+"-restore")
		}
	}
	return all
}

// standIn notes what it is given to restore and lets the real tool do it.
func standIn(name string) error {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("reading what to restore: %w", err)
	}
	log, err := os.OpenFile(os.Getenv(logVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("noting what is restored: %w", err)
	}
	defer log.Close()
	if _, err := fmt.Fprintf(log, "%q\n", input); err != nil {
		return fmt.Errorf("noting what is restored: %w", err)
	}
	if err := os.Setenv("PATH", os.Getenv(realVariable)); err != nil {
		return fmt.Errorf("finding the real %s: %w", name, err)
	}
	cmd := exec.Command(name, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running the real %s: %w", name, err)
	}
	return nil
}

// watched puts stand-ins first in PATH, and returns what tells what they restored since it was last
// called.
func watched(t *testing.T) func() []string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	must(t, err)
	for _, name := range restores() {
		must(t, os.Symlink(self, filepath.Join(dir, name)))
	}
	log := filepath.Join(dir, "log")
	t.Setenv(logVariable, log)
	t.Setenv(realVariable, cmp.Or(os.Getenv(realVariable), os.Getenv("PATH"))) // not where others stand in already
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() (all []string) {
		t.Helper()
		content, err := os.ReadFile(log)
		must(t, err)
		must(t, os.WriteFile(log, nil, 0o644))
		for line := range strings.Lines(string(content)) {
			input, err := strconv.Unquote(strings.TrimSuffix(line, "\n"))
			must(t, err)
			all = append(all, input)
		}
		return all
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
