package machines

import (
	"context"
	"fmt"
	"strings"

	"gridproxy/integration/manifests/chart"
)

// Install applies what helm makes of the chart for this cluster, with some further values, each KEY=JSON. Nothing of
// it may be running yet when this returns.
func (c *Cluster) Install(ctx context.Context, h chart.Helm, values ...string) error {
	manifests, err := h.Template(ctx, append(c.Values(), values...)...)
	if err != nil {
		return err
	}
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: " + chart.Namespace + "}}\n---\n"
	_, err = c.KubectlIn(ctx, strings.NewReader(namespace+manifests), "apply", "--server-side", "--force-conflicts", "--filename=-")
	if err != nil {
		return fmt.Errorf("installing the chart: %w", err)
	}
	return nil
}
