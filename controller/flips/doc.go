// Package flips bounds how many new units one Node brings by its labels. A kubelet can give its own
// Node any value of most label keys, and each value that is new makes a child of each Grid, or a
// NodeUnit.
//
// Invariant: within a Window, a Node brings at most as many new values of a key as allowed. A value
// that other Nodes may bring does not wait for a Node that may not.
//
// The package is pure: it takes values, the time included, and returns values.
package flips
