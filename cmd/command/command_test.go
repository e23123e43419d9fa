package command

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestExitCodes(t *testing.T) {
	foreign := exec.Command("sh", "-c", "exit 1").Run() // a code that is not ours
	for _, test := range []struct {
		args   string
		err    error
		code   int
		stderr string
	}{
		{"do", nil, OK, ""},
		{"do", errors.Join(errors.New("broken"), errors.New("in two places")), Failure, "error: broken\nerror: in two places\n"},
		{"do", fmt.Errorf("starting: %w", NewUsageError(errors.New("both"))), Usage, "error: starting: both\nSee 'program do --help'.\n"},
		{"do", Finding{}, Found, ""},
		{"do", fmt.Errorf("comparing: %w", Finding{errors.New("one")}), Found, "error: comparing: one\n"},
		{"do", fmt.Errorf("asking iptables: %w", foreign), Failure, "error: asking iptables: exit status 1\n"},
		{"do x", nil, Usage, "error: \"x\": this command takes flags only\nSee 'program do --help'.\n"},
		{"fly", nil, Usage, "error: unknown command \"fly\" for \"program\"\nSee 'program --help'.\n"},
		{"doo", nil, Usage, "error: unknown command \"doo\" for \"program\"; did you mean do?\nSee 'program --help'.\n"},
		{"do --x", nil, Usage, "error: unknown flag: --x\nSee 'program do --help'.\n"},
		{"do --time-limt=1s", nil, Usage, "error: unknown flag: --time-limt; did you mean --time-limit?\nSee 'program do --help'.\n"},
		{"do --time-limit", nil, Usage, "error: flag needs an argument: --time-limit\nSee 'program do --help'.\n"},
	} {
		root := &cobra.Command{Use: "program"}
		do := &cobra.Command{Use: "do", Args: NoArgs, RunE: func(*cobra.Command, []string) error { return test.err }}
		do.Flags().Duration("time-limit", 0, "how long")
		root.AddCommand(do)
		var out, problems bytes.Buffer
		code := Run(t.Context(), func(Stdio) *cobra.Command { return root }, strings.Fields(test.args), Stdio{strings.NewReader(""), &out, &problems})
		if code != test.code || problems.String() != test.stderr || out.Len() > 0 {
			t.Errorf("%s with error %v: code %d, standard output %q, standard error %q; want %d, nothing, %q",
				test.args, test.err, code, out.String(), problems.String(), test.code, test.stderr)
		}
	}
}

// TestVersionFlag: every program has --version, beside the command version.
func TestVersionFlag(t *testing.T) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "program", Run: func(*cobra.Command, []string) {}}
	code := Run(t.Context(), func(Stdio) *cobra.Command { return root }, []string{"--version"}, Stdio{strings.NewReader(""), &out, &out})
	if want := "program version " + ThisBuild().Version + "\n"; code != OK || out.String() != want {
		t.Errorf("code %d, %q, want %q", code, out.String(), want)
	}
}

func TestVerbosity(t *testing.T) {
	for verbosity, want := range map[int]int{0: 0, 3: 0, 4: 1} {
		var out bytes.Buffer
		NewLog(&out, "text", verbosity).Debug("detail")
		if got := strings.Count(out.String(), "detail"); got != want {
			t.Errorf("verbosity %d: %d lines, want %d", verbosity, got, want)
		}
	}
	var out bytes.Buffer
	if NewLog(&out, "json", 0).Info("x"); !strings.HasPrefix(out.String(), "{") {
		t.Errorf("JSON: %s", out.String())
	}
}
