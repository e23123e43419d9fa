package commandtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagBound says what a flag refuses, or why it refuses nothing.
type FlagBound struct {
	Beyond string // the first value beyond the bound, or one that is not of its kind
	Why    string // there is no bound
}

// Bounds checks that each flag of each command that takes a duration, a path, an address or any
// text has a row, and that an error names it for the value beyond its bound. The key of a row
// is the flag, or "COMMAND FLAG" if another command has a flag of that name with another bound.
func Bounds(t *testing.T, program Program, bounds map[string]FlagBound) {
	used := map[string]bool{}
	for _, c := range visible(t, program) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			key := c.Name() + " " + f.Name
			if _, ok := bounds[key]; !ok {
				key = f.Name
			}
			bound, ok := bounds[key]
			used[key] = true
			switch {
			case !ok && !isNumberOrName(f):
				t.Errorf("%s --%s has no row: give it a bound that its value beyond is refused by, or say why it has none", c.CommandPath(), f.Name)
			case ok && bound.Why == "":
				if err := given(program, c, f.Name, bound.Beyond); err == nil || !strings.Contains(err.Error(), "--"+f.Name) {
					t.Errorf("%s --%s=%s: %v, want an error that names the flag", c.CommandPath(), f.Name, bound.Beyond, err)
				}
			}
		})
	}
	for key := range bounds {
		if !used[key] {
			t.Errorf("there is no flag of the row %q", key)
		}
	}
}

// isNumberOrName reports whether a flag is no duration, no path, no address and no free text.
func isNumberOrName(f *pflag.Flag) bool {
	if v, ok := f.Value.(interface{ Words() []string }); ok && len(v.Words()) > 0 {
		return true
	}
	argument, _ := pflag.UnquoteUsage(f)
	return slices.Contains([]string{
		"", "int", "float", "float32", "number", "bit", "true|raw|false", "NAME=true|false,...",
		"name", "prefix", "domain", "NAME", "NODE", "NAMESPACE", "NAMESPACE/NAME", "LABELS", "KEY",
	}, argument)
}

// given returns the error of parsing and checking one flag of a command, without running it.
func given(program Program, c *cobra.Command, flag, value string) error {
	root := program(command.Stdio{In: strings.NewReader(""), Out: &strings.Builder{}, Err: &strings.Builder{}})
	again, _, err := root.Find(strings.Fields(c.CommandPath())[words(root):])
	if err != nil {
		return err
	}
	if err := again.ParseFlags([]string{"--" + flag + "=" + value}); err != nil {
		return err
	}
	problems := []error{again.ValidateArgs(nil)}
	if again.PreRunE != nil {
		problems = append(problems, again.PreRunE(again, nil))
	}
	return errors.Join(problems...)
}
