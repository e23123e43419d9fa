// Package ipvs spells a rules.Ruleset as virtual servers, addresses on our link and ipsets, and
// keeps the kernel equal to them. What these cannot express is a smaller Ruleset, which the
// iptables backend writes as chains. A packet meets these chains before IPVS, behind one match on
// an ipset.
//
// Invariant: a virtual server is ours if one of our sets or of kube-proxy's lists it, or if its
// address is on our link and no set lists any server on that address, as after a flush. On an
// address that the operator excludes, only our own sets count. Every other virtual server is never
// changed. Something is added before anything is deleted. A set entry is added before the virtual
// server that it makes ours, and deleted after it.
//
// Three words: desired is what the kernel should hold after a sync, observed is what was read from
// it and what was done since, and a State is either of them.
//
// Which file decides what:
//
//	phase.go            the order of work, and what a failure of the chains stops
//	split.go            what virtual servers serve and what chains serve
//	scheduler.go        which scheduler a Service gets
//	desired_servers.go  what all Services together need
//	grow.go, shrink.go  what is missing and what is surplus, as operations
//	drain.go            how a real server drains
//	ownership.go        which virtual servers are ours
//	conflict.go         what happens where another program has a virtual server
//	source.go           which source address this machine's own connections have
//	probe.go            whether this kernel has what IPVS mode needs
//	shadow.go           what a comparison without writing finds
//
// backend.go and sync_run.go carry the phases out, kernel*.go and read*.go are the messages to and
// from the kernel, and chains.go is what the backend of the chains may offer.
//
// Compiler, planner, Tracer, the parser of /proc/net/ip_vs and the printing of Parts are pure.
// Backend, Shadow and kernel do the I/O.
package ipvs
