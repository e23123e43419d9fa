// Package iptables is the driver that renders a rules.Ruleset as the chains of kube-proxy 1.37 and
// keeps the kernel equal to them. In IPVS mode the Ruleset has only what virtual servers cannot
// express, and the fixed chains differ: see render_ipvs.go.
//
// Where to look:
//
//   - what is written: render.go (fixed chains), render_service.go (one Service), render_jumps.go
//     (jumps from built-in chains), chain_names.go
//   - what is desired, chain by chain: desired.go; how a chain is treated: chain_policy.go
//   - whether a chain is right: chain_state.go; what the kernel holds: kernel_state.go; what was
//     written last: last_written.go; what has to be written: change.go
//   - one run for one address family: family_syncer.go, sync_run.go, script.go; the order of
//     tables: netfilter.Table
//   - how iptables-restore is called, with --wait: restore.go; iptables-save: save.go; which
//     variant: detect.go
//   - what gridproxy diff prints, in which order: difference.go; the lines of one chain:
//     recorded_state.go
//   - Services that the kernel refuses: isolate.go, bisect.go, quarantine.go
//   - cleaning up after ourselves and kube-proxy: cleanup.go, leftover.go
//
// Invariant: the driver writes only chains that netfilter.Naming.IsOurs names and jumps to them. A
// chain of ours that cannot be parsed is rewritten, never trusted.
//
// Rendering and comparing are pure; Backend, Shadow and kernel do the I/O. Package netfilter has
// the rules, their text and its parser.
package iptables
