package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

// facts are one line for each object with all that the daemon may read of it. Sources strip objects,
// so the objects themselves cannot be compared.
func facts(s topology.Snapshot) []string {
	var lines []string
	for _, svc := range s.Services {
		lines = append(lines, serviceFact(svc))
	}
	for _, slice := range s.Slices {
		lines = append(lines, sliceFact(slice))
	}
	for name, set := range s.Nodes {
		lines = append(lines, fmt.Sprintf("node %s %s", name, set))
	}
	if s.Self != nil {
		lines = append(lines, "self "+text(s.Self.Name, s.Self.Labels, s.Self.Status.Addresses, s.Self.Spec.PodCIDRs,
			s.Self.Spec.Taints, s.Self.DeletionTimestamp))
	}
	slices.Sort(lines)
	return lines
}

func serviceFact(s *corev1.Service) string {
	spec := s.Spec.DeepCopy()
	spec.Selector = nil // nothing that selects Pods is read
	spec.AllocateLoadBalancerNodePorts, spec.LoadBalancerClass, spec.LoadBalancerIP = nil, nil, ""
	return fmt.Sprintf("service %s/%s ", s.Namespace, s.Name) +
		text(s.UID, read(s.Annotations), s.Labels["service.kubernetes.io/service-proxy-name"], spec, s.Status.LoadBalancer.Ingress)
}

func sliceFact(s *topology.Slice) string {
	return fmt.Sprintf("slice %s/%s ", s.Namespace, s.Name) + text(s.Service, s.Triggered, s.Ports, s.Endpoints)
}

// read keeps the annotations that mean something to the daemon.
func read(all map[string]string) map[string]string {
	kept := map[string]string{}
	for k, v := range all {
		if k == "topologyKeys" || strings.HasPrefix(k, "superedge.io/") {
			kept[k] = v
		}
	}
	return kept
}

func text(values ...any) string {
	b, err := json.Marshal(values)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// fresh lists everything from etcd itself and leaves out what design says the rules leave out.
func fresh(ctx context.Context, t *testing.T, api kubernetes.Interface, node string) topology.Snapshot {
	t.Helper()
	s := topology.Snapshot{Node: node, Nodes: map[string]labels.Set{}}
	services, err := api.CoreV1().Services("").List(ctx, metav1.ListOptions{LabelSelector: "!service.kubernetes.io/service-proxy-name"})
	must(t, err)
	for i := range services.Items {
		if services.Items[i].Spec.ClusterIP != corev1.ClusterIPNone {
			s.Services = append(s.Services, &services.Items[i])
		}
	}
	endpoints, err := api.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{LabelSelector: "!service.kubernetes.io/headless"})
	must(t, err)
	for i := range endpoints.Items {
		s.Slices = append(s.Slices, topology.NewSlice(&endpoints.Items[i]))
	}
	nodes, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	must(t, err)
	for i := range nodes.Items {
		s.Nodes[nodes.Items[i].Name] = nodes.Items[i].Labels
		if nodes.Items[i].Name == node {
			s.Self = &nodes.Items[i]
		}
	}
	return s
}

// ofUnits leaves the Nodes that share a value of a watched key with this node; nil = all.
func ofUnits(s topology.Snapshot, watched map[string]bool) topology.Snapshot {
	if watched == nil {
		return s
	}
	own := s.Nodes[s.Node]
	s.Nodes = maps.Clone(s.Nodes)
	maps.DeleteFunc(s.Nodes, func(name string, set labels.Set) bool {
		return name != s.Node && !topology.Intersects(slices.Collect(maps.Keys(watched)), own, set)
	})
	return s
}

// unwatched is a key that a Service names and this node carries, and that is not watched.
func unwatched(s topology.Snapshot, watched map[string]bool) string {
	for _, svc := range s.Services {
		keys, _, _ := topology.ParseKeys(svc.Annotations) //nolint:errcheck // a mistake names no key
		for _, key := range keys {
			if s.Nodes[s.Node][key] != "" && watched != nil && !watched[key] {
				return fmt.Sprintf("key %s of Service %s is not watched", key, svc.Name)
			}
		}
	}
	return ""
}

// withoutHeadless drops what a source may hand out or not, as it likes: the rules have no use for it.
func withoutHeadless(s topology.Snapshot) topology.Snapshot {
	s.Services = slices.DeleteFunc(slices.Clone(s.Services), func(svc *corev1.Service) bool {
		return svc.Spec.ClusterIP == corev1.ClusterIPNone
	})
	return s
}
