package main

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestNodeUnitsFlag: without the half of NodeUnits, nothing of it starts, waits for its
// definitions, or counts for /readyz.
func TestNodeUnitsFlag(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"superedge.io", "site.superedge.io"}},
		{[]string{"--node-units=false"}, []string{"superedge.io"}},
	} {
		o, flags := defaults(), pflag.NewFlagSet("run", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(test.args); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range starters(nil, o, metrics{}) {
			got = append(got, s.group.Group)
		}
		if len(got) != len(test.want) || got[0] != test.want[0] {
			t.Errorf("%v starts the controllers of %v, want %v", test.args, got, test.want)
		}
	}
}
