// Package cluster tests clusters of real machines, with kubelet and containerd, whose network is a
// real kube-proxy's or the chart's:
//   - docs/migrate-from-kube-proxy.md: its commands, taken from the document, are run one heading
//     after the other on machines where a real kube-proxy serves, of both variants of iptables, and
//     after each step the test checks who answers and what the kernel holds.
//   - Installation with the real helm, by the commands that an administrator types: over
//     SuperEdge's definitions and objects, and on an empty cluster; upgrade, removal and a second
//     installation; and the same with the plain manifests. What users have made must survive all of
//     it.
//   - What a newcomer reads first, README.md and docs/getting-started.md: every command is typed in
//     a new clone, in the order of the page, and prints what the page shows. What a test must do
//     otherwise is a table, pages_table_test.go.
//   - Security: what the processes of the chart may do (capabilities, seccomp, what they can write
//     to), and what becomes of the daemon without each of its capabilities. Which rights the
//     accounts need is shown in integration/manifests, without machines.
//   - A site without uplink, beside one that a real kube-proxy serves: what clients there notice of
//     the cut, of reboots and restarts meanwhile, and of the return of the link. gridproxy is moved
//     there from the DaemonSet to static Pods, by the commands of docs/site-alone.md.
//   - DNS: with the chart's DNS server on every Node, turned on as docs/dns.md says: SuperEdge's
//     manual about headless Services, names that its hosts file took apart wrongly, a table of
//     names of every kind, changes beside the real CoreDNS, and a unit whose uplink is gone. Each
//     query of a Pod is counted where it is answered. Then Pods ask all the time while DNS is
//     turned off and on, upgraded and uninstalled: how many queries are lost, and what stays on
//     Nodes.
//
// Invariant: nothing but the commands of the document or the administrator changes the cluster, and
// nothing outlives the test; see package machines. Not pure: a cluster of machines.
package cluster
