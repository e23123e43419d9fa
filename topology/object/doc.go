// Package object is how API objects are held: each trimmed to what gridproxy reads, lists of them in the
// order of namespace and name.
//
// Invariant: what a Trimmer is given stays as it is, and trimming twice is trimming once. But for the
// memory of names that many objects share, the package is pure.
package object
