// Package topology decides which endpoints each Service may use from one node.
//
// The central idea is closure: a Service with the annotation topologyKeys is confined to the
// NodeUnit of this node. Its endpoints are those whose node has the same non-empty value as this
// node for one of these label keys.
//
// Where to look:
//
//   - what goes in: snapshot.go; what comes out: view.go; the order of all decisions, and for
//     which Services they are taken: resolve.go
//   - which annotations close a Service, and what a malformed one means: keys.go; an annotation
//     that nothing reads and that is probably misspelled: misnamed.go
//   - which endpoints are in this node's unit: closure.go; which key is in use under
//     topology-policy Ordered: fallback.go; not all nodes of a unit are known: watched.go
//   - what of an EndpointSlice counts: slice.go; an EndpointSlice made from that again:
//     slice_object.go; endpoints of a port, and an address that is listed twice: candidate.go
//   - readiness, topology hints, terminating endpoints: policy.go; endpoints that are used
//     although they are not ready, after a cut: wave.go
//   - the node-local proxy in place of the API servers: apiproxy.go
//   - how an address is read, and at which no endpoint and no external IP can be: addr.go; which
//     ignored fields of a Service are reported: warnings.go
//   - names, addresses and ports in DNS for this node: resolve_dns.go, their types in
//     dns_service.go; what of a slice only DNS reads: slice_names.go; names that are the same in
//     every unit: dns_alias.go; which of two Services a cluster IP names: addr_holders.go
//   - the names of a Grid's children, which are also DNS names: childname.go
//   - which Services are decided again after a change: tracker.go, and of a Node's labels
//     moved.go; the results of the others: memo.go (rules), dns_memo.go (DNS)
//
// Invariant: what a Snapshot does not prove to be inside the unit is outside. An unknown node, a
// missing nodeName, an empty label value or an unreadable annotation never adds an endpoint.
//
// The package is pure: values in, values out. No file, no clock, no network, no log.
package topology
