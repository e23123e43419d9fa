// Package upgrade replaces both programs of a pinned older commit by today's, and today's by the
// older ones again: on a node with traffic, and on a control plane with Grids. State, names and
// rules must carry over in both directions.
//
// Invariant: the older programs are built from that commit with its own go.mod; nothing of this
// checkout goes into them. Not pure: its tests run git, go build and both programs.
package upgrade
