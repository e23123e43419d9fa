// Package ipvs spells a rules.Ruleset as virtual servers, the addresses on our link and
// ipsets, and keeps the kernel equal to them.
//
// A virtual server has one set of real servers whatever the source of a packet, and no
// verdict. What it can say is one State; what it cannot say goes, as a smaller Ruleset, to
// the iptables backend, whose chains a packet meets before IPVS, behind one ipset match.
// Compile draws that line, and nothing else does.
//
// Invariant: a virtual server is ours if its address is on our link or it is listed in one of
// our sets; every other one is never touched. Something is added before anything is deleted,
// and a set entry goes after the server that it makes ours.
//
// Compile, Plan, Parse, Trace and the printing of parts are pure; Backend and Kernel do the
// I/O.
package ipvs
