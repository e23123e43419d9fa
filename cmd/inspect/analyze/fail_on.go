package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// FailOn is the value of --fail-on: the least Severity for which a command has exit code 1, or
// never.
type FailOn string

const never FailOn = "never"

func (FailOn) values() []string {
	var all []string
	for _, s := range Severities() {
		all = append(all, string(s))
	}
	return append(all, string(never))
}

// AddFlag declares --fail-on, which sets f, and lets a shell complete it.
func (f *FailOn) AddFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(f), "fail-on", string(Error), "least serious finding for which the exit code is 1: "+strings.Join(f.values(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(f.values(), cobra.ShellCompDirectiveNoFileComp)) // fails only without the flag
}

// Check returns an error unless --fail-on may have this value.
func (f FailOn) Check() error {
	if slices.Contains(f.values(), string(f)) {
		return nil
	}
	return fmt.Errorf("--fail-on %q: want %s", string(f), strings.Join(f.values(), ", "))
}

// Reached reports whether the Report has a finding that is serious enough.
func (f FailOn) Reached(r Report) bool { return f != never && r.Fails(Severity(f)) }
