// Package services runs Kubernetes' own end-to-end scenarios for Services, each under the name
// that it has there, against gridproxy and, without -short, against the real kube-proxy, and
// prints the two side by side.
//
// A scenario is written again here against a whole cluster of package machines: real kubelets,
// real Pods, real EndpointSlices. It does not know which proxy it runs against. gridproxy must
// pass all of them; what kube-proxy does not pass is shown in the table and fails nothing.
//
// Invariant: a scenario touches objects that bear its own name only, except for those that are
// marked as alone, which run one after the other when all others are done. Not pure: all of it is
// a cluster.
package services
