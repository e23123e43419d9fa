//go:build kubeproxy136

package agreement

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	sysctl "k8s.io/component-helpers/node/util/sysctl/testing"
	"k8s.io/kubernetes/pkg/proxy/healthcheck"
	"k8s.io/kubernetes/pkg/proxy/iptables"
)

// constructProxier makes a Proxier of kube-proxy up to 1.36, where the caller keeps the flag
// --iptables-localhost-nodeports from IPv6, and iptables must be said to have --random-fully.
func constructProxier(ctx context.Context, s proxierSettings) (*iptables.Proxier, error) {
	s.tables.SetHasRandomFully(true)
	localhost := s.localhostNodePorts && s.family == corev1.IPv4Protocol
	return iptables.NewProxier(ctx, s.family, s.tables, sysctl.NewFake(), time.Hour, 0, s.masqueradeAll, localhost, masqueradeBit,
		s.detector, s.node, s.ip, nil, healthcheck.NewProxyHealthServer("", time.Hour, nil), s.nodePortAddresses, false)
}

func setZone(p *iptables.Proxier, _, zone string) {
	p.OnTopologyChange(map[string]string{corev1.LabelTopologyZone: zone})
}

// comparableWith takes out of a Cluster what this release decides otherwise: nothing.
func comparableWith(c Cluster) Cluster { return c }
