//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sysctl "k8s.io/component-helpers/node/util/sysctl/testing"
	proxyconfig "k8s.io/kubernetes/pkg/proxy/apis/config"
	"k8s.io/kubernetes/pkg/proxy/healthcheck"
	"k8s.io/kubernetes/pkg/proxy/iptables"
)

// constructProxier makes a Proxier of kube-proxy 1.37 or later.
func constructProxier(ctx context.Context, s proxierSettings) (*iptables.Proxier, error) {
	c := &proxyconfig.KubeProxyConfiguration{
		SyncPeriod:        metav1.Duration{Duration: time.Hour},
		NodePortAddresses: s.nodePortAddresses,
	}
	c.Linux.MasqueradeAll = s.masqueradeAll
	c.IPTables.MasqueradeBit = new(int32(masqueradeBit))
	c.IPTables.LocalhostNodePorts = new(s.localhostNodePorts)
	return iptables.NewProxier(ctx, c, s.family, s.tables, sysctl.NewFake(), s.detector, s.node, s.ip, nil,
		healthcheck.NewProxyHealthServer("", time.Hour, nil), false)
}

func setZone(p *iptables.Proxier, _, zone string) {
	p.OnTopologyChange(map[string]string{corev1.LabelTopologyZone: zone})
}

// comparableWith takes out of a Cluster what this release decides otherwise: nothing.
func comparableWith(c Cluster) Cluster { return c }
