// Package written remembers which versions of objects this process has written, until the caches
// show them. Nothing is decided on an older version of such an object.
//
// Invariant: an object whose version cannot be compared is never stale.
package written
