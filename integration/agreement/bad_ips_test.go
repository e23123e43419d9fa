package agreement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestBadIPs: what kube-proxy's test of this name pins, held against kube-proxy itself.
// Addresses and source ranges with leading zeros, and IPv4 ones in IPv6 form, are what they
// mean.
func TestBadIPs(t *testing.T) {
	requireNamespace(t)
	machines := newMachines(t)
	for _, spelling := range []struct{ cluster, external, balancer, ranges string }{
		{"172.30.0.041", "192.168.099.022", "1.2.3.004", "203.0.113.000/025"},
		{"::ffff:172.30.0.41", "::ffff:192.168.099.22", "::FFFF:0102:00304", "::ffff:203.0.113.0/0121"},
		{"172.30.0.41", "192.168.99.22", "1.2.3.4", " 203.00.113.77/025 "},
	} {
		c := oneService()
		svc := c.Services[0]
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = spelling.cluster, []string{spelling.cluster}
		svc.Spec.ExternalIPs = []string{spelling.external}
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: spelling.balancer}}
		svc.Spec.LoadBalancerSourceRanges = []string{spelling.ranges}
		c.Slices = c.Slices[:1]
		c.Slices[0].Endpoints[0].Addresses = []string{"10.244.01.005"}
		if spelling.cluster[0] == ':' {
			svc.Spec.ClusterIP = "172.30.0.41" // kube-proxy takes the family of a cluster IP from its text
			svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
		}
		result, err := machines.Compare(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range result.Differences {
			t.Errorf("%+v: %v", spelling, d)
		}
		if result.Flows < 100 || result.Ends["drop"] == 0 || result.Ends["endpoint masqueraded"] == 0 {
			t.Errorf("%+v: %d packets were compared, which met %v: too few to tell", spelling, result.Flows, result.Ends)
		}
	}
}
