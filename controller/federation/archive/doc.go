// Package archive packs objects of Kubernetes for Flux: a gzipped tar with one file of JSON for
// each. The files are called .yaml, which JSON is too, since Flux reads no others.
//
// Invariant: equal objects, in any order, give equal bytes. Unpack reads nothing that is above its
// bounds, and writes no file.
//
// Pure.
package archive
