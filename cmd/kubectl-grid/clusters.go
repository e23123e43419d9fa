package main

import (
	"context"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/kubectl-grid/fleet"
	"gridproxy/controller/api/v1alpha1"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newClusters(std command.Stdio, c *connection) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "clusters",
		Short: "Show the clusters to which Grids are distributed",
		Long: `Show the clusters to which this cluster, the hub, distributes Grids: their FleetClusters.

HEARD is how long ago the cluster has renewed its Lease, by its clock and the clock of this machine;
of a silent cluster, how long ago the hub has heard it last. GRIDS is how many of its Grids are what
the hub has.`,
		Example: `  kubectl grid clusters
  kubectl grid clusters -o json`,
		Args:    command.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return command.NewUsageError(command.CheckFormat(output)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := c.clusters(cmd.Context())
			if err != nil {
				return err
			}
			return command.PrintAs(std.Out, output, all, all.WriteTable)
		},
	}
	command.AddFormat(cmd.Flags(), &output)
	return cmd
}

func (c *connection) clusters(ctx context.Context) (fleet.Hub, error) {
	r, err := c.reader()
	if err != nil {
		return fleet.Hub{}, err
	}
	defer command.Waiting(c.problems, "reading the FleetClusters")()
	var all []*v1alpha1.FleetCluster
	if err := r.server.FleetClusters(ctx, func(f *v1alpha1.FleetCluster) { all = append(all, f) }); err != nil {
		return fleet.Hub{}, err
	}
	ofMembers := metav1.ListOptions{LabelSelector: v1alpha1.LabelCluster}
	leases, err := listAll[*coordinationv1.Lease](ctx, r, "Leases", ofMembers, r.client.CoordinationV1().Leases(metav1.NamespaceAll).List)
	if err != nil {
		return fleet.Hub{}, err
	}
	return fleet.NewHub(all, leases, time.Now()), nil
}
