// Package tree is a root file system in memory: what a container sees at each path.
//
// Invariant: a path leads where the kernel would lead a program that has the tree as its root.
//
// Pure, but for the readers and writers it is given.
package tree
