// Package drain tests that no connection is lost that need not be: while an endpoint goes, while a
// unit is made smaller, while gridproxy is away, while a live node changes between the modes iptables
// and ipvs, and while gridproxy takes over from a real kube-proxy in IPVS mode. All the while many
// clients make short connections one after the other, and others stay on connections that are open.
// Those are package traffic's; how IPVS is seen, and how a node is switched, is of this one alone.
//
// TestSiteAlone cuts a unit off from its API server, and reboots its machines: every request inside
// of the unit is answered from the saved state, whatever the clock says.
//
// It holds tests only. They need root, the iptables tools, ipset, ipvsadm, and a kernel with IPVS: run
// them by vmexec. The API server that kube-proxy listens to is a fake: see need.FakeAPI.
package drain
