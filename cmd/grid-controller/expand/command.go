package expand

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
)

type request struct {
	std        command.Stdio
	files      []string
	namespace  string
	kubeconfig string
	diff       bool
}

// New makes the command expand.
func New(std command.Stdio) *cobra.Command {
	c := &request{std: std}
	cmd := &cobra.Command{
		Use:   "expand -f FILE|DIR|- ... [--diff --kubeconfig FILE]",
		Short: "Print the children of Grids, or what they would change in a cluster",
		Long: `Print the Deployments, StatefulSets and Services of the Grids in the files, for the units of the
Nodes in the files, as YAML, sorted by namespace, kind and name. No cluster is used. Files may
contain many documents and lists; other kinds in them are skipped.

A unit that cannot have its child, for example because its template is missing, is an error. The
children of the other units are still printed. If a Grid itself is invalid, nothing is printed.

With --diff, print instead what server-side apply of the children would change in a cluster, as
one unified diff per object. This is a dry run: nothing is written. The units are those of the
cluster's Nodes, unless the files contain Nodes. Children of lost units are not compared.

The exit code is 1 only with --diff, if something would change.`,
		Example: `  kubectl get nodes -o yaml | grid-controller expand -f deploy/samples/stateless -f -
  grid-controller expand -f grid.yaml --diff --kubeconfig ~/.kube/config`,
		DisableFlagsInUseLine: true,
		Args:                  command.NoArgs,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&c.files, "filename", "f", nil, "`FILE|DIR|-` with Grids and Nodes; may be repeated")
	f.StringVarP(&c.namespace, "namespace", "n", "default", "namespace of Grids that do not name one")
	f.BoolVar(&c.diff, "diff", false, "compare with a cluster")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the API server; without it: in-cluster (only with --diff)")
	return cmd
}

func (c *request) run(ctx context.Context) error {
	switch {
	case len(c.files) == 0:
		return command.NewUsageError(errors.New("no -f is given; name a file, a directory or -"))
	case c.kubeconfig != "" && !c.diff:
		return command.NewUsageError(fmt.Errorf("--kubeconfig %s: it is used only with --diff; add --diff, or leave it out", c.kubeconfig))
	}
	in, warnings, err := read(c.files, c.std.In, c.namespace)
	c.warn(warnings)
	if err != nil {
		return err
	}
	if c.diff {
		return c.diffAll(ctx, in)
	}
	return c.print(in)
}

func (c *request) print(in input) error {
	children, warnings, problems := in.children()
	c.warn(warnings)
	text, err := printed(children)
	if err == nil {
		_, err = c.std.Out.Write(text)
	}
	return errors.Join(err, problems)
}

func (c *request) diffAll(ctx context.Context, in input) error {
	cluster, err := connect(c.kubeconfig)
	if err != nil {
		return err
	}
	text, warnings, err := cluster.diffAll(ctx, in)
	c.warn(warnings)
	if _, failed := c.std.Out.Write(text); failed != nil {
		err = errors.Join(err, failed)
	}
	switch {
	case err != nil:
		return err
	case len(text) > 0:
		return command.Finding{}
	}
	return nil
}

func (c *request) warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(c.std.Err, "warning: %s\n", strings.ReplaceAll(w, "\n", "; "))
	}
}
