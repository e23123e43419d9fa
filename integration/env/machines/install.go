package machines

import (
	"context"
	"fmt"
	"strings"
)

// Renderer makes manifests of the chart with some values, each KEY=JSON.
type Renderer interface {
	Template(ctx context.Context, values ...string) (string, error)
}

// chartNamespace is what the chart is installed in.
const chartNamespace = "gridproxy"

// Install applies what helm makes of the chart for this cluster, with some further values, each KEY=JSON. Nothing of
// it may be running yet when this returns.
func (c *Cluster) Install(ctx context.Context, chart Renderer, values ...string) error {
	manifests, err := chart.Template(ctx, append(c.Values(), values...)...)
	if err != nil {
		return err
	}
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: " + chartNamespace + "}}\n---\n"
	_, err = c.KubectlIn(ctx, strings.NewReader(namespace+manifests), "apply", "--server-side", "--force-conflicts", "--filename=-")
	if err != nil {
		return fmt.Errorf("installing the chart: %w", err)
	}
	return nil
}
