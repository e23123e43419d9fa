package agreement

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Shrink takes away from a Cluster what a finding does not need: objects first, then
// parts of them, then flags. What is left still differs, and loses that with any one
// thing less.
func Shrink(c Cluster, differs func(Cluster) bool) Cluster {
	for smaller := true; smaller; {
		smaller = false
		for candidate := range reductions(c) {
			if differs(candidate) {
				c, smaller = candidate, true
				break
			}
		}
	}
	return c
}

// reductions are the Clusters that have one thing less.
func reductions(c Cluster) iter.Seq[Cluster] {
	return func(yield func(Cluster) bool) {
		for _, all := range []iter.Seq[Cluster]{objectsLess(c), endpointsLess(c), fieldsLess(c), flagsLess(c)} {
			for less := range all {
				if !yield(less) {
					return
				}
			}
		}
	}
}

// without is a copy of a slice that lacks one element.
func without[T any](all []T, i int) []T { return slices.Delete(slices.Clone(all), i, i+1) }

func objectsLess(c Cluster) iter.Seq[Cluster] {
	return func(yield func(Cluster) bool) {
		for i := range c.Services {
			less := c
			if less.Services = without(c.Services, i); !yield(less) {
				return
			}
		}
		for i := range c.Slices {
			less := c
			if less.Slices = without(c.Slices, i); !yield(less) {
				return
			}
		}
		for i := range c.Nodes {
			less := c
			if less.Nodes = without(c.Nodes, i); !yield(less) {
				return
			}
		}
		for i := range c.HostAddrs {
			less := c
			if less.HostAddrs = without(c.HostAddrs, i); !yield(less) {
				return
			}
		}
	}
}

func endpointsLess(c Cluster) iter.Seq[Cluster] {
	return func(yield func(Cluster) bool) {
		for s, slice := range c.Slices {
			for i := range slice.Endpoints {
				less := changeSlice(c, s, func(e *discoveryv1.EndpointSlice) { e.Endpoints = without(e.Endpoints, i) })
				if !yield(less) {
					return
				}
			}
			for i := range slice.Ports {
				less := changeSlice(c, s, func(e *discoveryv1.EndpointSlice) { e.Ports = without(e.Ports, i) })
				if !yield(less) {
					return
				}
			}
			for i, e := range slice.Endpoints {
				if e.Hints == nil {
					continue
				}
				if !yield(changeSlice(c, s, func(e *discoveryv1.EndpointSlice) { e.Endpoints[i].Hints = nil })) {
					return
				}
			}
		}
	}
}

func changeSlice(c Cluster, i int, change func(*discoveryv1.EndpointSlice)) Cluster {
	c.Slices = slices.Clone(c.Slices)
	c.Slices[i] = c.Slices[i].DeepCopy()
	change(c.Slices[i])
	return c
}

// fieldsLess empties fields of Services that may be empty.
func fieldsLess(c Cluster) iter.Seq[Cluster] {
	return func(yield func(Cluster) bool) {
		for s, svc := range c.Services {
			for _, change := range simplifications(svc) {
				less := c
				less.Services = slices.Clone(c.Services)
				less.Services[s] = svc.DeepCopy()
				change(less.Services[s])
				if !yield(less) {
					return
				}
			}
		}
	}
}

func simplifications(svc *corev1.Service) []func(*corev1.Service) {
	var all []func(*corev1.Service)
	for _, key := range slices.Sorted(maps.Keys(svc.Annotations)) {
		all = append(all, func(s *corev1.Service) { delete(s.Annotations, key) })
	}
	for i := range svc.Spec.Ports {
		all = append(all, func(s *corev1.Service) { s.Spec.Ports = without(s.Spec.Ports, i) })
	}
	for i := range svc.Spec.ExternalIPs {
		all = append(all, func(s *corev1.Service) { s.Spec.ExternalIPs = without(s.Spec.ExternalIPs, i) })
	}
	for i := range svc.Spec.LoadBalancerSourceRanges {
		all = append(all, func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = without(s.Spec.LoadBalancerSourceRanges, i)
		})
	}
	for i := range svc.Status.LoadBalancer.Ingress {
		all = append(all, func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = without(s.Status.LoadBalancer.Ingress, i)
		})
	}
	if svc.Spec.SessionAffinity != "" {
		all = append(all, func(s *corev1.Service) { s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = "", nil })
	}
	if svc.Spec.InternalTrafficPolicy != nil {
		all = append(all, func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = nil })
	}
	return all
}

func flagsLess(c Cluster) iter.Seq[Cluster] {
	return func(yield func(Cluster) bool) {
		for _, change := range []func(*Flags) bool{
			func(f *Flags) bool { was := f.MasqueradeAll; f.MasqueradeAll = false; return was },
			func(f *Flags) bool { was := f.LocalhostNodePorts; f.LocalhostNodePorts = false; return was },
			func(f *Flags) bool { was := f.NodePortAddresses; f.NodePortAddresses = nil; return was != nil },
			func(f *Flags) bool {
				was := f.DetectLocalMode
				f.DetectLocalMode, f.ClusterCIDRs, f.PodInterface = "ClusterCIDR", nil, ""
				return was != "ClusterCIDR"
			},
			func(f *Flags) bool { was := f.IPVSExclude; f.IPVSExclude = nil; return was != nil },
			func(f *Flags) bool { was := f.NodesWithoutUnit; f.NodesWithoutUnit = "closed"; return was != "closed" },
		} {
			less := c
			if change(&less.Flags) && !yield(less) {
				return
			}
		}
	}
}
