package machines

import (
	"context"
	"errors"

	"gridproxy/integration/controlplane"
)

var errNotYet = errors.New("not there yet")

// Gridproxy makes the image gridproxy:dev of this source tree.
func Gridproxy(ctx context.Context, dir string) (Image, error) { return Image{}, errNotYet }

// KubeProxy is a manifest of the real kube-proxy, as a DaemonSet kube-system/kube-proxy; its image is on every
// machine. mode is kube-proxy's; variant "" is what each machine's own iptables is.
func (c *Cluster) KubeProxy(mode string, variant controlplane.Variant) (string, error) {
	return "", errNotYet
}
