// Package object makes of API objects what is held of them in memory: the fields that gridproxy
// reads, in lists sorted by namespace and name.
//
// Where each decision is taken:
//
//	trimmer.go  which fields, labels and annotations are kept, and in how much memory
//	compare.go  the order of objects
//
// Invariant: a Trimmer does not change its argument, and trimming an API object twice is the same
// as trimming it once. Pure, except that a Trimmer remembers names that many objects share.
package object
