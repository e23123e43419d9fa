package main

import (
	"fmt"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/watch"

	"github.com/spf13/pflag"
)

// checkFromState returns an error if --from-state is empty, or given with a flag of another
// source. Otherwise it returns the value of --node-name, or "" without --from-state.
func checkFromState(flags *pflag.FlagSet) (node string, err error) {
	f := flags.Lookup(options.FromStateFlag)
	if f == nil || !f.Changed {
		return "", nil
	}
	if f.Value.String() == "" {
		return "", command.NewUsageError(fmt.Errorf(`--%s "": want a file that gridproxy run --state-dir saved`, f.Name))
	}
	for _, name := range []string{"manifests", "kubeconfig", "master", "api-servers"} {
		if other := flags.Lookup(name); other.Changed {
			return "", command.NewUsageError(fmt.Errorf("--%s %s and --%s %s: give one of them; a saved state takes the place of files and API servers", f.Name, f.Value, name, other.Value))
		}
	}
	return flags.Lookup("node-name").Value.String(), nil
}

// readState reads the file of --from-state into in.saved. It takes the place of any other
// source in the options, and sets their node. A node that is not "" must be that of the file.
func (in *inputs) readState(node string) error {
	read, err := watch.ReadState(in.FromState)
	if err != nil {
		return fmt.Errorf("reading the saved state %s: %w; want a file that gridproxy run --state-dir saved", in.FromState, err)
	}
	if node != "" && node != read.Node {
		return command.NewUsageError(fmt.Errorf("--node-name %s and --%s %s: the file is the state of Node %s; leave --node-name out", node, options.FromStateFlag, in.FromState, excerpt.Quoted(read.Node)))
	}
	in.NodeName, in.Kubeconfig, in.Master, in.APIServers, in.Manifests = read.Node, "", "", nil, nil
	in.saved = &read.Snapshot
	return nil
}

// stateLine returns a line with the time and the file of in.saved, which must not be nil.
func (in *inputs) stateLine() string {
	return fmt.Sprintf("saved %s, read from %s", in.saved.Saved.UTC().Format(time.RFC3339), in.FromState)
}

// saySaved prints, to standard error, which saved state the answer is from, if it is from one.
func (in *inputs) saySaved() {
	if in.saved != nil {
		fmt.Fprintf(in.stderr, "State: %s\n", in.stateLine())
	}
}
