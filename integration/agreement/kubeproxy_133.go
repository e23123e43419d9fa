//go:build kubeproxy133

package agreement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/feature"
	sysctl "k8s.io/component-helpers/node/util/sysctl/testing"
	"k8s.io/kubernetes/pkg/proxy/healthcheck"
	"k8s.io/kubernetes/pkg/proxy/iptables"
)

// constructProxier makes a Proxier of kube-proxy 1.33, where hints for nodes count only with a
// feature gate that is off by default.
func constructProxier(ctx context.Context, s proxierSettings) (*iptables.Proxier, error) {
	if err := feature.DefaultMutableFeatureGate.Set("PreferSameTrafficDistribution=true"); err != nil {
		return nil, fmt.Errorf("switching hints for nodes on: %w", err)
	}
	s.tables.SetHasRandomFully(true)
	localhost := s.localhostNodePorts && s.family == corev1.IPv4Protocol
	return iptables.NewProxier(ctx, s.family, s.tables, sysctl.NewFake(), time.Hour, 0, s.masqueradeAll, localhost, masqueradeBit,
		s.detector, s.node, s.ip, nil, healthcheck.NewProxyHealthServer("", time.Hour), s.nodePortAddresses, false)
}

func setZone(p *iptables.Proxier, node, zone string) {
	p.OnNodeAdd(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{corev1.LabelTopologyZone: zone}}})
}

// comparableWith takes out of a Cluster what this release decides otherwise:
//   - Of two endpoints of a Service with one address, 1.33 takes the first one, and later releases
//     the one that is not terminating. Each address of a Service is there once.
//   - A source range that holds every address has a rule in 1.33, and none in later releases.
func comparableWith(c Cluster) Cluster {
	seen := map[string]bool{}
	c.Slices, c.Services = slices.Clone(c.Slices), slices.Clone(c.Services)
	for i, slice := range c.Slices {
		slice = slice.DeepCopy()
		slice.Endpoints = slices.DeleteFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
			address := fmt.Sprint(slice.Namespace, "/", slice.Labels[labelServiceName], " ", e.Addresses[:min(1, len(e.Addresses))]) // the others are ignored
			found := seen[address]
			seen[address] = true
			return found
		})
		c.Slices[i] = slice
	}
	for i, svc := range c.Services {
		svc = svc.DeepCopy()
		svc.Spec.LoadBalancerSourceRanges = slices.DeleteFunc(svc.Spec.LoadBalancerSourceRanges, func(text string) bool {
			return strings.HasSuffix(strings.TrimSpace(text), "/0")
		})
		c.Services[i] = svc
	}
	return c
}
