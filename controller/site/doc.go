// Package site makes Nodes, NodeUnits and NodeGroups equal to what package assign says: it observes all of them, executes
// the steps, and remembers what it wrote until its caches show it. It decides nothing about them.
//
// Invariant: a Node is written only where it differs, by one forced apply of the labels and annotations of all units that
// hold it, with metadata.uid, so that no Node is ever made; its taints, an atomic list, only against the version that they
// were read from. What is remembered can be forgotten at any time.
//
// Not pure: API server, clock (handed in) and log.
package site
