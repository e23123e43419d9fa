// Package topology decides which endpoints each Service may use from one node.
//
// The central idea is closure: a Service with the annotation topologyKeys is confined to the
// NodeUnit of this node. Its endpoints are those whose node has the same non-empty value as this
// node for one of these label keys.
//
// Where each decision is taken:
//
//	keys.go          which annotations close a Service, and what a malformed annotation means
//	closure.go       which endpoints are in this node's unit
//	fallback.go      ordered fallback: which key is in use under topology-policy Ordered
//	watched.go       what holds while not all nodes of a unit are known
//	wave.go          which endpoints are used although they are not ready, after a cut
//	policy.go        readiness, topology hints, serving-but-terminating (draining) endpoints
//	slice.go         what of an EndpointSlice counts
//	apiproxy.go      which node-local proxy takes the place of the API servers
//	candidate.go     which endpoints a Service port has, and one address that is listed twice
//	unusable.go      addresses at which no endpoint and no external IP can be
//	warnings.go      which ignored fields of a Service are reported
//	childname.go     the names of a Grid's children, which are also DNS names
//	misnamed.go      which annotation that nothing reads was probably meant to be one that is read
//	resolve.go       in which order all of this is decided, for which Services
//	slice_names.go   what of an EndpointSlice only DNS reads
//	resolve_dns.go   which names, addresses and ports a Service has for this node
//	dns_alias.go     which names are the same in every unit
//	addr_holders.go  which of two Services a cluster IP names
//
// Memo and DNSMemo remember results and decide nothing; tracker finds what has changed.
//
// Invariant: what a Snapshot does not prove to be inside the unit is outside. An unknown node, a
// missing nodeName, an empty label value or an unreadable annotation never adds an endpoint.
//
// The package is pure: values in, values out. No file, no clock, no network, no log.
package topology
