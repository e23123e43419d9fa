package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/cmd/inspect/matrix"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func newMatrix(std command.Stdio, c *connection) *cobra.Command {
	var output, noUnit string
	cmd := &cobra.Command{
		Use:   "matrix [[NAMESPACE/]SERVICE ...]",
		Short: "Show from which units the clients of each unit are answered",
		Long: `Show from which units the clients of each unit are answered, for all Services or the given ones. The
answer is that of "gridproxy matrix", whose help says what each cell means.

A Service without a namespace is in --namespace, else in the namespace of the context. Without any
Service, --namespace shows only those in it.`,
		Example: `  kubectl grid matrix
  kubectl grid matrix web orders -n shop
  kubectl grid matrix -o html > matrix.html`,
		Args: func(*cobra.Command, []string) error { return checkAnswer(output, noUnit, matrix.FormatHTML) },
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := c.matrix(cmd.Context(), args, topology.Config{NodesWithoutUnit: topology.NodesWithoutUnit(noUnit)})
			if err != nil {
				return err
			}
			return matrix.Print(std.Out, output, m)
		},
	}
	addNoUnit(cmd.Flags(), &noUnit)
	c.completeServices(cmd, math.MaxInt)
	command.AddFormat(cmd.Flags(), &output, matrix.FormatHTML)
	return cmd
}

// addNoUnit declares --nodes-without-unit, which changes what the daemons answer.
func addNoUnit(fs *pflag.FlagSet, noUnit *string) {
	command.AddWord(fs, noUnit, "nodes-without-unit", "", "what the flag of the daemons is: `closed|local|open`", noUnitWords()...)
}

func noUnitWords() []string {
	return []string{string(topology.WithoutUnitClosed), string(topology.WithoutUnitLocal), string(topology.WithoutUnitOpen)}
}

// checkAnswer checks the flags of a command about Services. It may have more formats.
func checkAnswer(output, noUnit string, more ...string) error {
	if err := command.CheckWord("nodes-without-unit", noUnit, noUnitWords()...); err != nil {
		return err
	}
	return command.CheckFormat(output, more...)
}

// matrix returns the Matrix of the Services that args name. Without names it has all Services,
// or those in --namespace.
func (c *connection) matrix(ctx context.Context, args []string, config topology.Config) (matrix.Matrix, error) {
	names, err := c.serviceNames(args)
	if err != nil {
		return matrix.Matrix{}, command.NewUsageError(err)
	}
	s, err := c.snapshot(ctx, "")
	if err != nil {
		return matrix.Matrix{}, err
	}
	rows, err := explain.InNamespace(s, c.givenNamespace())
	if len(names) > 0 {
		rows, err = explain.FindAll(s, names)
	}
	if err != nil {
		return matrix.Matrix{}, err
	}
	return matrix.New(s, config, rows), nil
}

func (c *connection) serviceNames(args []string) ([]types.NamespacedName, error) {
	namespace, err := c.namespace()
	if err != nil {
		return nil, err
	}
	names := make([]types.NamespacedName, len(args))
	for i, text := range args {
		in := c.givenNamespace()
		if first, _, found := strings.Cut(text, "/"); !found || first == "svc" || first == "service" {
			in = namespace
		}
		if names[i], err = explain.ParseName(text, in); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// snapshot reads the Snapshot of the cluster as seen from a Node; "" = from no Node in
// particular.
func (c *connection) snapshot(ctx context.Context, node string) (topology.Snapshot, error) {
	r, err := c.reader()
	if err != nil {
		return topology.Snapshot{}, err
	}
	defer command.Waiting(c.problems, "reading the cluster")()
	return r.snapshot(ctx, node)
}

// snapshot reads what a Node needs to decide about closure; "" = no Node in particular. It is
// an error if the cluster has no such Node, or none at all. It has all Services, so that those
// without rules can be explained too. As in "gridproxy explain", the addresses of the machine
// are those of its Node object.
func (r *reader) snapshot(ctx context.Context, node string) (topology.Snapshot, error) {
	nodes, err := r.nodes(ctx, "")
	if err != nil {
		return topology.Snapshot{}, err
	}
	if len(nodes) == 0 {
		return topology.Snapshot{}, fmt.Errorf("API server %s has no Node, so that there is no unit; check --context", r.server.Address)
	}
	s := topology.Snapshot{Node: node, Nodes: make(map[string]labels.Set, len(nodes))}
	for _, n := range nodes {
		s.Nodes[n.Name] = n.Labels
		if n.Name == node {
			s.Self = n
		}
	}
	if node != "" && s.Self == nil {
		return topology.Snapshot{}, fmt.Errorf("there is no Node %s among the %d Nodes; check --context and --node", excerpt.Of(node), len(nodes))
	}
	s.Host = topology.HostOfNode(s.Self)
	s.Services, err = r.services(ctx)
	if err != nil {
		return topology.Snapshot{}, err
	}
	notHeadless := metav1.ListOptions{LabelSelector: "!" + topology.LabelHeadless}
	listed, err := listAll[*discoveryv1.EndpointSlice](ctx, r, "EndpointSlices", notHeadless, r.client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List)
	if err != nil {
		return topology.Snapshot{}, err
	}
	for _, slice := range listed {
		s.Slices = append(s.Slices, topology.NewSlice(slice))
	}
	slices.SortFunc(s.Services, topology.CompareObjects)
	slices.SortFunc(s.Slices, topology.CompareObjects)
	return s, nil
}
