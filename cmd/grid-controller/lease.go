package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// podNamespace is the file with the namespace of the Pod in which the program runs.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// newLease returns the Lease that the leader holds; nil without leader election. It is made
// here because a manager with a separate configuration for the Lease adds all core types to its
// scheme, which has Services of its own: see grid.Scheme.
func newLease(config *rest.Config, o options, inCluster bool) (resourcelock.Interface, error) {
	if !o.leaderElect {
		return nil, nil //nolint:nilnil // no Lease
	}
	namespace, err := ownNamespace(o, inCluster)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("finding a name for the holder of the Lease: %w", err)
	}
	holder := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	lease, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, o.leaseName, holder, leaseConfig(config), o.renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("preparing the Lease %s/%s: %w", namespace, o.leaseName, err)
	}
	return lease, nil
}

// ownNamespace returns the namespace of the controller's own objects: that of the flag for the
// Lease, else that of its Pod, else kube-system.
func ownNamespace(o options, inCluster bool) (string, error) {
	switch {
	case o.leaseNamespace != "":
		return o.leaseNamespace, nil
	case inCluster:
		text, err := os.ReadFile(podNamespace)
		if err != nil {
			return "", fmt.Errorf("finding the controller's namespace: %w; give --leader-elect-resource-namespace", err)
		}
		return strings.TrimSpace(string(text)), nil
	default:
		return "kube-system", nil
	}
}

// leaseConfig returns the configuration for the Lease. Its few requests have a rate limit of
// their own: a leader must not lose its Lease because it has much to write.
func leaseConfig(config *rest.Config) *rest.Config {
	lease := rest.CopyConfig(config)
	lease.RateLimiter = nil
	return lease
}
