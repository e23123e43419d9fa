// Package ipvs spells a rules.Ruleset as virtual servers, addresses on our link and ipsets, and
// keeps the kernel equal to them. What these cannot express is a smaller Ruleset, which the
// iptables backend writes as chains. A packet meets these chains before IPVS, behind one match on
// an ipset.
//
// Three words: desired is what the kernel should hold after a sync, observed is what was read from
// it and what was done since, and a State is either of them.
//
// Where to look:
//
//   - New, Sync, Status: backend.go; the order of one sync, and what a failure stops: phase.go;
//     the steps that write: sync_run.go
//   - what virtual servers serve and what chains serve: split.go; the plan of one Service, kept
//     while it does not change: compile.go; which scheduler a Service gets: scheduler.go
//   - what all Services together need: desired_servers.go; the types of State: state.go; the names
//     of our sets and what each is for: sets.go
//   - what is added: grow.go; what is deleted: shrink.go; how a real server drains: drain.go;
//     which keys are compared: touched.go; the operations of a plan: operation.go; what a plan
//     starts from: planner.go
//   - which virtual servers are ours: ownership.go; another program has one of them: conflict.go;
//     another process changed what we wrote: otherwrites.go
//   - which source address this machine's own connections have: source.go, kernel_source.go
//   - whether this kernel has what IPVS mode needs: probe.go; which address families can be
//     written by now, and what the backend of the chains may offer: families.go
//   - writing to the kernel, and how long it may take to answer: kernel.go; kernel_link.go,
//     kernel_server.go, kernel_set.go; reading from it: read*.go, parse_proc.go
//   - the lines of render and diff: parts.go; what diff and --shadow find: shadow.go; the way of a
//     packet: trace.go; what cleanup removes: cleanup.go; times and bounds: limits.go
//
// Invariant: a virtual server is ours if one of our sets or of kube-proxy's lists it, or if its
// address is on our link and no set lists any server on that address, as after a flush. On an
// address that the operator excludes, only our own sets count. Every other virtual server is never
// changed. Something is added before anything is deleted. A set entry is added before the virtual
// server that it makes ours, and deleted after it.
//
// Compiler, planner, Tracer, the parser of /proc/net/ip_vs and the printing of Parts are pure.
// Backend, Shadow and kernel do the I/O.
package ipvs
