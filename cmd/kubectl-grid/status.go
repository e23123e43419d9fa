package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/kubectl-grid/fleet"
	"gridproxy/cmd/kubectl-grid/nodeproxy"
	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology/excerpt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

type statusFlags struct {
	names    []string // of the Nodes; none = all
	selector string
	key      string
	port     int
	timeout  time.Duration // of one Node
	output   string
}

func newStatus(std command.Stdio, c *connection) *cobra.Command {
	var flags statusFlags
	cmd := &cobra.Command{
		Use:   "status [NODE ...]",
		Short: "Show which Nodes have a healthy daemon, and which Grids are not well",
		Long: `Show which Nodes have a healthy daemon, and the state of each DeploymentGrid and StatefulSetGrid.

The daemon of each Linux Node is asked for /healthz, through the API server: at most 20 Nodes at once,
--timeout each. That needs the right to get nodes/proxy. A daemon is

  healthy    it has said so
  unhealthy  a change waits for too long, or nothing has been written yet
  unknown    it could not be asked: there is no daemon, the Node does not answer, or you have no right

AGE is how old the rules in force are, by the clock of the Node. READY is the kubelet's condition.
UNIT is the Node's value of --key; without it, of the label keys that closed Services or Grids name
and Nodes have, at most 4. kube-proxy has the same /healthz: its Nodes look like those of gridproxy.
"gridproxy status" on the Node says more.

Without --namespace the Grids of all namespaces are shown.

The exit code is 0 if every Node that was asked is healthy and no Grid is Degraded, has its deletions
held or has no status. Otherwise it is 1, and standard error has a line for each reason, at most 20;
it is 3 if Grids or Services cannot be read.`,
		Example: `  kubectl grid status
  kubectl grid status bj-1 bj-2
  kubectl grid status -l location=beijing --key location -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			flags.names = args
			return flags.check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.print(cmd.Context(), c, std) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&flags.selector, "selector", "l", "", "only Nodes with these `LABELS`, such as location=beijing")
	fs.StringVar(&flags.key, "key", "", "label `KEY` whose values are the units")
	fs.IntVar(&flags.port, "healthz-port", 10256, "`PORT` of /healthz on the Nodes; beside kube-proxy: 10356")
	fs.DurationVar(&flags.timeout, "timeout", nodeproxy.Deadline, "how long one Node may take, at most 1m")
	command.AddFormat(fs, &flags.output)
	c.completeNodes(cmd)
	return cmd
}

func (f statusFlags) check() error {
	for _, name := range f.names {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%s is not the name of a Node", excerpt.Quoted(name))
		}
	}
	if _, err := labels.Parse(f.selector); err != nil {
		return fmt.Errorf("--selector %s: %w", excerpt.Quoted(f.selector), err)
	}
	if f.key != "" && len(validation.IsQualifiedName(f.key)) > 0 {
		return fmt.Errorf("--key %s: want a label key, such as location", excerpt.Quoted(f.key))
	}
	if f.port < 1 || f.port > 65535 {
		return fmt.Errorf("--healthz-port %d: want 1 to 65535", f.port)
	}
	if f.timeout <= 0 || f.timeout > time.Minute {
		return fmt.Errorf("--timeout %s: want more than 0s and at most 1m", f.timeout)
	}
	return command.CheckFormat(f.output)
}

// print prints the Report. The error has a line for each problem; it is a command.Finding
// unless something could not be read.
func (f statusFlags) print(ctx context.Context, c *connection, std command.Stdio) error {
	r, unread, err := f.report(ctx, c)
	if err != nil {
		return err
	}
	if err := command.PrintAs(std.Out, f.output, r, r.WriteTable); err != nil {
		return err
	}
	var problems []error
	for _, p := range r.Problems {
		problems = append(problems, errors.New(p))
	}
	if unread != nil {
		return errors.Join(append([]error{unread}, problems...)...) // the answer may lack the worst
	}
	if len(problems) == 0 {
		return nil
	}
	return command.Finding{Problems: errors.Join(problems...)}
}

// report reads everything. unread is an error about what report lacks; err means no report.
func (f statusFlags) report(ctx context.Context, c *connection) (report fleet.Report, unread, err error) {
	r, err := c.reader()
	if err != nil {
		return fleet.Report{}, nil, err
	}
	defer command.Waiting(c.problems, "asking the API server and the daemons")()
	all, err := r.nodes(ctx, f.selector)
	if err != nil {
		return fleet.Report{}, nil, err
	}
	nodes, err := f.chosen(all)
	if err != nil {
		return fleet.Report{}, nil, err
	}
	asker, err := nodeproxy.New(r.config, f.port, f.timeout)
	if err != nil {
		return fleet.Report{}, nil, err
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	answers := asker.Ask(ctx, names)
	if err := ctx.Err(); err != nil {
		return fleet.Report{}, nil, fmt.Errorf("asking the daemons: %w", err)
	}
	grids, unread := r.grids(ctx, c.givenNamespace())
	keys := []string{f.key}
	if f.key == "" {
		var noKeys error
		keys, noKeys = r.keys(ctx, nodes, grids)
		unread = errors.Join(unread, noKeys)
	}
	return fleet.NewReport(keys, nodes, answers, grids), unread, nil
}

// chosen returns the named Nodes; without names those that should have the daemon. It is an
// error if one of the names is missing, or if there is none to return.
func (f statusFlags) chosen(all []*corev1.Node) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	for _, n := range all {
		if slices.Contains(f.names, n.Name) || len(f.names) == 0 && fleet.Runs(n) {
			nodes = append(nodes, n)
		}
	}
	if len(f.names) == 0 && len(nodes) == 0 {
		return nil, fmt.Errorf("there is no Linux Node among the %d Nodes; check --context and --selector", len(all))
	}
	missing := slices.DeleteFunc(slices.Clone(f.names), func(name string) bool {
		return slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })
	})
	if len(missing) > 0 {
		return nil, fmt.Errorf("there is no Node %s among the %d Nodes; check --context and --selector", strings.Join(missing, ", "), len(all))
	}
	return nodes, nil
}

// grids returns the rows of all Grids of a namespace; "" = of all namespaces. With an error it
// returns the rows that could be read.
func (r *reader) grids(ctx context.Context, namespace string) ([]fleet.Grid, error) {
	rows := []fleet.Grid{}
	err := r.server.DeploymentGrids(ctx, namespace, func(g *v1.DeploymentGrid) {
		rows = append(rows, fleet.NewGrid(fleet.KindDeploymentGrid, g.ObjectMeta, g.Spec.GridUniqKey, g.Status.WorkloadGridStatus))
	})
	more := r.server.StatefulSetGrids(ctx, namespace, func(g *v1.StatefulSetGrid) {
		rows = append(rows, fleet.NewGrid(fleet.KindStatefulSetGrid, g.ObjectMeta, g.Spec.GridUniqKey, g.Status.WorkloadGridStatus))
	})
	return rows, errors.Join(err, more)
}

// keys returns the label keys of units. If it cannot read the Services, it returns the keys
// that the Grids name, and an error.
func (r *reader) keys(ctx context.Context, nodes []*corev1.Node, grids []fleet.Grid) ([]string, error) {
	services, err := r.services(ctx)
	if err != nil {
		err = fmt.Errorf("%w; --key names the units without them", err)
	}
	return fleet.UnitKeys(nodes, services, grids), err
}
