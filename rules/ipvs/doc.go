// Package ipvs spells a rules.Ruleset as virtual servers, the addresses on our link and
// ipsets, and keeps the kernel equal to them.
//
// A virtual server has one set of real servers whatever the source of a packet, and no
// verdict. What it can say is one State; what it cannot say goes, as a smaller Ruleset, to
// the iptables backend, whose chains a packet meets before IPVS, behind one ipset match.
// Compile draws that line, and nothing else does.
//
// Invariant: a virtual server is ours if one of our sets or of kube-proxy's lists it, or if
// its address is on our link and no set lists any server on that address, as after a flush;
// on an address that the operator excludes, only if one of our sets does. Every other one is
// never touched. Something is added before anything is deleted; a set entry comes before the
// server that it makes ours and goes after it.
//
// Compiler, planner, Parse, Trace and the printing of parts are pure; Backend and kernel do
// the I/O.
package ipvs
