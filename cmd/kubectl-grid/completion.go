package main

import (
	"context"
	"math"

	"gridproxy/cmd/command"
	"gridproxy/cmd/command/objectnames"
	"gridproxy/cmd/inspect/clusterlist"
	"gridproxy/cmd/kubectl-grid/fleet"

	"github.com/spf13/cobra"
)

// completeObjects returns a function that completes up to most arguments with the objects at
// some paths of the API. forms returns the texts that name an object.
func (c *connection) completeObjects(most int, paths func() ([]string, error), forms func(namespace, name, typed string) []string) cobra.CompletionFunc {
	return command.CompleteNames(func(ctx context.Context, args []string, typed string, add func(string) bool) error {
		if len(args) >= most {
			return nil
		}
		config, err := c.config()
		if err != nil {
			return err
		}
		all, err := paths()
		if err != nil {
			return err
		}
		var last error // a cluster may lack one of the kinds
		for _, path := range all {
			last = objectnames.Each(ctx, config, path, func(namespace, name string) bool {
				for _, form := range forms(namespace, name, typed) {
					if !add(form) {
						return false
					}
				}
				return true
			})
		}
		return last
	})
}

func onlyPath(path string) func() ([]string, error) {
	return func() ([]string, error) { return []string{path}, nil }
}

func bareName(_, name, _ string) []string { return []string{name} }

func (c *connection) completeNamespace(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", c.completeObjects(math.MaxInt, onlyPath("/api/v1/namespaces"), bareName))
}

func (c *connection) completeNodes(cmd *cobra.Command) {
	cmd.ValidArgsFunction = c.completeObjects(math.MaxInt, onlyPath("/api/v1/nodes"), bareName)
}

func (c *connection) completeServices(cmd *cobra.Command, most int) {
	cmd.ValidArgsFunction = c.completeObjects(most, onlyPath("/api/v1/services"), func(namespace, name, typed string) []string {
		current, err := c.namespace()
		if err != nil {
			return nil
		}
		return command.ServiceForms(namespace, name, c.givenNamespace(), current, typed)
	})
}

// completeClusters completes --cluster of a command for which that is a FleetCluster.
func (c *connection) completeClusters(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("cluster", c.completeObjects(math.MaxInt, onlyPath(clusterlist.FleetClusterPath()), bareName))
}

// completeGrids completes --kind, and an argument that is a Grid of that kind.
func (c *connection) completeGrids(cmd *cobra.Command, kind *string) {
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"dg", "ssg"}, cobra.ShellCompDirectiveNoFileComp))
	paths := func() ([]string, error) {
		namespace, err := c.namespace()
		if err != nil {
			return nil, err
		}
		var all []string
		if kinds()[*kind] != fleet.KindStatefulSetGrid {
			all = append(all, clusterlist.GridPath("deploymentgrids", namespace))
		}
		if kinds()[*kind] != fleet.KindDeploymentGrid {
			all = append(all, clusterlist.GridPath("statefulsetgrids", namespace))
		}
		return all, nil
	}
	cmd.ValidArgsFunction = c.completeObjects(1, paths, bareName)
}
