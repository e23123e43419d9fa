// Package event decides which Kubernetes Events and warnings a node reports about a Service.
//
// Where to look:
//
//   - unreadable annotations, ignored fields, a unit that lost its last endpoint, and what was
//     reported before: next.go; the first two, of headless Services: names.go
//   - another Service, or an API server, has an address of the Service: conflict.go
//   - the kernel has no IPVS scheduler of that name: scheduler.go
//   - the kernel refuses the rules of the Service, or cannot keep session affinity: quarantine.go
//   - which node sends what several nodes see alike: sender.go
//   - how Events are logged and sent, at a bounded rate: reporter.go
//
// Invariant: a transition is reported, never a state, and only by nodes of the unit that it
// concerns. What every node sees alike, such as a mistake in an annotation, is sent by one node of
// each unit: the first by name, because a node does not know which other daemons run. If that node
// is down or has no daemon, the other units still report it. What concerns no unit is sent by the
// first node that has an endpoint of the Service, because a node does not know all Nodes. Every
// node logs it, and of Services with rules counts it in gridproxy_malformed_annotations.
//
// Next and the functions whose names begin with Next are pure. Reporter is not.
package event
