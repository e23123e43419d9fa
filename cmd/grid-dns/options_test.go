package main

import (
	"bytes"
	"strings"
	"testing"

	"gridproxy/cmd/command"
)

// run runs grid-dns with some arguments.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot(command.Stdio{In: strings.NewReader(""), Out: &out, Err: &out})
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SilenceErrors, root.SilenceUsage = true, true
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// TestBadFlags: flags that cannot be followed end the program before it does anything, with a
// message that names them.
func TestBadFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"serve --address 169.254.20", `--address "169.254.20" is no IP address`},
		{"serve --address fe80::1%eth0", `--address "fe80::1%eth0" is no IP address`},
		{"serve --address=", "--address is empty"},
		{"serve --metrics-bind-address :9253", `--metrics-bind-address ":9253" is no ADDRESS:PORT`},
		{"serve --names-sock /x", "unknown flag: --names-sock"},
		{"serve now", "now"},
		{"check --address no", `--address "no" is no IP address`},
		{"check --names-socket /x", "unknown flag"},
		{"start", "start"},
	} {
		if out, err := run(t, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("grid-dns %s: %v, want %q; printed %q", c.args, err, c.want, out)
		}
	}
}

// TestDefaults: what gridproxy adds and names is what grid-dns uses without flags.
func TestDefaults(t *testing.T) {
	o := defaults()
	if err := o.read(); err != nil {
		t.Fatal(err)
	}
	if len(o.addrs) != 2 || !o.addrs[0].Is4() || !o.addrs[1].Is6() {
		t.Errorf("addresses %v", o.addrs)
	}
}
