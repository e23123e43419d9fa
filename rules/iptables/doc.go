// Package iptables is the driver that keeps the kernel equal to the chains of a rules.Ruleset, as
// package render spells them.
//
// Where to look:
//
//   - what the daemon calls: backend.go; without writing: shadow.go; which families can be
//     written: families.go; guarding loopback addresses: firewall.go
//   - how a change is written, step by step: family_syncer.go; its calls of iptables-restore:
//     sync_run.go, and their text: script.go; a Service of many chains: chunks.go
//   - what differs from the kernel: change.go; what was written last: last_written.go; whether another
//     process has written since: generation.go, other_writes.go
//   - what the kernel holds: kernel.go, kernel_state.go; one chain of it: chain_state.go; jumps
//     from built-in chains: jumps.go; surplus copies of them: surplus.go; a table that cannot be
//     read: unreadable.go
//   - the tools: tools.go, limits.go; which variant: detect.go; iptables-restore: restore.go;
//     iptables-save: save.go; iptables: command.go; nf_tables and counters by netlink: nft.go
//   - what gridproxy diff prints: difference.go
//   - Services that the kernel refuses: package refusal
//   - cleaning up after ourselves and kube-proxy: cleanup.go
//
// Invariant: the driver writes only chains that netfilter.Naming.IsOurs names and jumps to them. A
// chain of ours that cannot be parsed is rewritten, never trusted.
//
// Comparing is pure; Backend, Shadow and kernel do the I/O.
package iptables
