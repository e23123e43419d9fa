// Package object makes of API objects what is held of them in memory: the fields that gridproxy
// reads, in lists sorted by namespace and name.
//
// Invariant: a Trimmer does not change its argument, and trimming an API object twice is the same
// as trimming it once. Pure, except that a Trimmer remembers names that many objects share.
package object
