package main

import (
	"context"
	"fmt"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/kubectl-grid/fleet"
	"gridproxy/topology/excerpt"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// kinds returns the values of --kind with the kinds that they stand for; "" = either kind.
func kinds() map[string]string {
	return map[string]string{
		"": "", "dg": fleet.KindDeploymentGrid, "deploymentgrid": fleet.KindDeploymentGrid,
		"ssg": fleet.KindStatefulSetGrid, "statefulsetgrid": fleet.KindStatefulSetGrid,
	}
}

// askedUnits is which units are asked for.
type askedUnits struct {
	grid    string
	kind    string // of kinds; "" = either
	cluster string // "" = all
}

func newUnits(std command.Stdio, c *connection) *cobra.Command {
	var asked askedUnits
	var output string
	cmd := &cobra.Command{
		Use:   "units GRID",
		Short: "Show each unit of a DeploymentGrid or StatefulSetGrid",
		Long: `Show each unit of a DeploymentGrid or StatefulSetGrid, as its status has it: lost units first, then
those that have failed, are offline, are changing. The status has at most 1000 units.

If the Grid is distributed to other clusters, CLUSTER is the cluster of each unit; "-" is this one.
--cluster prints all units that one of these clusters reports, also those that the status has no room
for. It is the name of a FleetCluster here, and not a cluster of the kubeconfig; use --context for that.

The Grid is in --namespace, else in the namespace of the context. --kind is needed only if a
DeploymentGrid and a StatefulSetGrid have the same name.`,
		Example: `  kubectl grid units web -n shop
  kubectl grid units db --kind ssg -o json
  kubectl grid units web --cluster west`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments: want the name of one Grid", len(args))
			}
			if len(validation.IsDNS1123Subdomain(args[0])) > 0 {
				return fmt.Errorf("%s is not the name of a Grid", excerpt.Quoted(args[0]))
			}
			if _, found := kinds()[asked.kind]; !found {
				return fmt.Errorf("--kind %s: want dg or ssg", excerpt.Quoted(asked.kind))
			}
			if asked.cluster != "" && len(validation.IsDNS1123Subdomain(asked.cluster)) > 0 {
				return fmt.Errorf("--cluster %s: want the name of a FleetCluster, see kubectl grid clusters", excerpt.Quoted(asked.cluster))
			}
			return command.CheckFormat(output)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			asked.grid = args[0]
			u, err := c.units(cmd.Context(), asked)
			if err != nil {
				return err
			}
			return command.PrintAs(std.Out, output, u, u.WriteTable)
		},
	}
	cmd.Flags().StringVar(&asked.kind, "kind", "", "kind of the Grid: `dg|ssg`")
	cmd.Flags().StringVar(&asked.cluster, "cluster", "", "`NAME` of a FleetCluster: only the units there, as it reports them")
	c.completeGrids(cmd, &asked.kind)
	c.completeClusters(cmd)
	command.AddFormat(cmd.Flags(), &output)
	return cmd
}

func (c *connection) units(ctx context.Context, asked askedUnits) (fleet.Units, error) {
	namespace, err := c.namespace()
	if err != nil {
		return fleet.Units{}, err
	}
	r, err := c.reader()
	if err != nil {
		return fleet.Units{}, err
	}
	defer command.Waiting(c.problems, "reading the Grid")()
	g, err := r.workload(ctx, namespace, asked.grid, kinds()[asked.kind])
	if err != nil {
		return fleet.Units{}, err
	}
	if asked.cluster == "" {
		return fleet.NewUnits(g.kind, g.object, g.spec, g.status), nil
	}
	if g.status, err = r.reported(ctx, asked.cluster, g); err != nil {
		return fleet.Units{}, err
	}
	return fleet.NewReportedUnits(asked.cluster, g.kind, g.object, g.spec, g.status), nil
}

// workload is a DeploymentGrid or a StatefulSetGrid.
type workload struct {
	kind   string
	object metav1.ObjectMeta
	spec   v1.WorkloadGridSpec
	status v1.WorkloadGridStatus
}

// workload returns the Grid of a name and a kind; "" = of either kind. It fails if both kinds
// have one, or if there is none.
func (r *reader) workload(ctx context.Context, namespace, name, kind string) (found workload, err error) {
	var d v1.DeploymentGrid
	var s v1.StatefulSetGrid
	var isDeployment, isStateful bool
	if kind != fleet.KindStatefulSetGrid {
		if isDeployment, err = r.getGrid(ctx, "deploymentgrids", namespace, name, &d); err != nil {
			return workload{}, err
		}
	}
	if kind != fleet.KindDeploymentGrid {
		if isStateful, err = r.getGrid(ctx, "statefulsetgrids", namespace, name, &s); err != nil {
			return workload{}, err
		}
	}
	switch {
	case isDeployment && isStateful:
		return workload{}, command.NewUsageError(fmt.Errorf("%s/%s is a DeploymentGrid and a StatefulSetGrid; give --kind dg or --kind ssg", namespace, name))
	case isDeployment:
		return workload{fleet.KindDeploymentGrid, d.ObjectMeta, d.Spec, d.Status.WorkloadGridStatus}, nil
	case isStateful:
		return workload{fleet.KindStatefulSetGrid, s.ObjectMeta, s.Spec, s.Status.WorkloadGridStatus}, nil
	case kind != "":
		return workload{}, fmt.Errorf("there is no %s %s in namespace %s; see kubectl grid status", kind, name, namespace)
	default:
		return workload{}, fmt.Errorf("there is no DeploymentGrid or StatefulSetGrid %s in namespace %s; see kubectl grid status", name, namespace)
	}
}

// reported returns the status that a cluster reports of a Grid. No report is an error.
func (r *reader) reported(ctx context.Context, cluster string, g workload) (v1.WorkloadGridStatus, error) {
	var found *v1.WorkloadGridStatus
	err := r.server.GridReports(ctx, cluster, func(report *v1alpha1.GridReport) {
		if _, uid, _ := strings.Cut(report.Spec.From, "/"); uid == string(g.object.UID) && report.Spec.Kind == g.kind {
			found = &report.Spec.Status
		}
	})
	if err != nil {
		return v1.WorkloadGridStatus{}, err
	}
	if found == nil {
		return v1.WorkloadGridStatus{}, fmt.Errorf("cluster %s has no report about %s %s/%s; kubectl grid clusters says which clusters there are, and status.clusters of the Grid why it is not there",
			cluster, g.kind, g.object.Namespace, g.object.Name)
	}
	return *found, nil
}
