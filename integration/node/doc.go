// Package node tests the daemon as a node has it, with a real API server or a real kube-proxy
// beside it. Tests that virtual machines run too are in packages of their own below.
//   - Operation: what an operator sees of a daemon on a real API server: its Events, health,
//     metrics, log, and the answers of the other commands. The daemon is the built binary on a node
//     in a network namespace; nothing is faked.
//   - API server: topology/watch's cluster source against a real API server: whatever the
//     connection, the API server or etcd's history does, in the end the Snapshot holds exactly what
//     a fresh list does. No test waits for a fixed time. Each polls until the Snapshot and the list
//     are equal, and fails with their difference at a deadline.
//   - Odd objects: of random objects, manifests take what an API server stores, and the rest is
//     refused by both, except a table of differences.
//   - Take-over: what happens on a node where a real kube-proxy has written its rules and gridproxy
//     comes after it: nothing is rewritten but what closure changes, and no connection ends. What
//     kube-proxy wrote is read from the kernel, never written by the test. The tools that gridproxy
//     runs are counted by programs in front of them.
//   - Sites: six daemons on a real API server. Random ones are cut off, restarted and rebooted.
//     After each step closure holds, and rules equal those made from scratch, or those from before
//     the cut.
//   - Upgrade: both programs of a pinned older commit are replaced by today's, and today's by the
//     older ones again, on a node with traffic and on a control plane with Grids. The older
//     programs are built from that commit with its own go.mod; nothing of this checkout goes into
//     them.
//
// Not pure: processes, network namespaces, git and go build.
package node
