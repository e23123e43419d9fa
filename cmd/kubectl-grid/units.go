package main

import (
	"context"
	"fmt"

	"gridproxy/cmd/command"
	"gridproxy/cmd/kubectl-grid/fleet"
	"gridproxy/topology/excerpt"

	v1 "gridproxy/controller/api/v1"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// kinds are the values of --kind.
func kinds() map[string]string {
	return map[string]string{
		"": "", "dg": fleet.KindDeploymentGrid, "deploymentgrid": fleet.KindDeploymentGrid,
		"ssg": fleet.KindStatefulSetGrid, "statefulsetgrid": fleet.KindStatefulSetGrid,
	}
}

func newUnits(std command.Stdio, c *connection) *cobra.Command {
	var kind, output string
	cmd := &cobra.Command{
		Use:   "units GRID",
		Short: "Show each unit of a DeploymentGrid or StatefulSetGrid",
		Long: `Show each unit of a DeploymentGrid or StatefulSetGrid, as its status has it: lost units first, then
those that have failed, are offline, are changing. The status has at most 1000 units.

The Grid is in --namespace, else in the namespace of the context. --kind is needed only if a
DeploymentGrid and a StatefulSetGrid have the same name.`,
		Example: `  kubectl grid units web -n shop
  kubectl grid units db --kind ssg -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments: want the name of one Grid", len(args))
			}
			if len(validation.IsDNS1123Subdomain(args[0])) > 0 {
				return fmt.Errorf("%s is not the name of a Grid", excerpt.Quoted(args[0]))
			}
			if _, found := kinds()[kind]; !found {
				return fmt.Errorf("--kind %s: want dg or ssg", excerpt.Quoted(kind))
			}
			return command.CheckFormat(output)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := c.units(cmd.Context(), args[0], kinds()[kind])
			if err != nil {
				return err
			}
			return command.PrintAs(std.Out, output, u, u.WriteTable)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "kind of the Grid: `dg|ssg`")
	c.completeGrids(cmd, &kind)
	command.AddFormat(cmd.Flags(), &output)
	return cmd
}

// units are those of one Grid of a kind; "" = of either kind.
func (c *connection) units(ctx context.Context, name, kind string) (fleet.Units, error) {
	namespace, err := c.namespace()
	if err != nil {
		return fleet.Units{}, err
	}
	config, err := c.config()
	if err != nil {
		return fleet.Units{}, err
	}
	r, err := newReader(config)
	if err != nil {
		return fleet.Units{}, err
	}
	defer command.Waiting(c.problems, "reading the Grid")()
	var d v1.DeploymentGrid
	var s v1.StatefulSetGrid
	var isDeployment, isStateful bool
	if kind != fleet.KindStatefulSetGrid {
		if isDeployment, err = r.getGrid(ctx, "deploymentgrids", namespace, name, &d); err != nil {
			return fleet.Units{}, err
		}
	}
	if kind != fleet.KindDeploymentGrid {
		if isStateful, err = r.getGrid(ctx, "statefulsetgrids", namespace, name, &s); err != nil {
			return fleet.Units{}, err
		}
	}
	switch {
	case isDeployment && isStateful:
		return fleet.Units{}, command.NewUsageError(fmt.Errorf("%s/%s is a DeploymentGrid and a StatefulSetGrid; give --kind dg or --kind ssg", namespace, name))
	case isDeployment:
		return fleet.NewUnits(fleet.KindDeploymentGrid, d.ObjectMeta, d.Spec, d.Status.WorkloadGridStatus), nil
	case isStateful:
		return fleet.NewUnits(fleet.KindStatefulSetGrid, s.ObjectMeta, s.Spec, s.Status.WorkloadGridStatus), nil
	case kind != "":
		return fleet.Units{}, fmt.Errorf("there is no %s %s in namespace %s; see kubectl grid status", kind, name, namespace)
	default:
		return fleet.Units{}, fmt.Errorf("there is no DeploymentGrid or StatefulSetGrid %s in namespace %s; see kubectl grid status", name, namespace)
	}
}
