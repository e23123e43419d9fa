package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// FailOn is the value of --fail-on: the least Severity for which a command has exit code 1, or
// never.
type FailOn string

const never FailOn = "never"

// values are those of --fail-on.
func (FailOn) values() []string {
	var all []string
	for _, s := range Severities() {
		all = append(all, string(s))
	}
	return append(all, string(never))
}

// AddFlag declares --fail-on.
func (f *FailOn) AddFlag(fs *pflag.FlagSet) {
	fs.StringVar((*string)(f), "fail-on", string(Error), "least serious finding for which the exit code is 1: "+strings.Join(f.values(), ", "))
}

// Check is an error if the value is none of --fail-on.
func (f FailOn) Check() error {
	if slices.Contains(f.values(), string(f)) {
		return nil
	}
	return fmt.Errorf("--fail-on %q: want %s", string(f), strings.Join(f.values(), ", "))
}

// Reached reports whether the Report has a finding that is serious enough.
func (f FailOn) Reached(r Report) bool { return f != never && r.Fails(Severity(f)) }
