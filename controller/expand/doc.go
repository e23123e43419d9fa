// Package expand decides which children a Grid has in each NodeUnit, and what has to be done to have them. It is pure:
// it takes what is known of the cluster, the time included, and returns what to do and what to say about it.
//
// Invariant: nothing that the user wrote is lost. A template is overlaid as JSON, never passed through typed structs;
// typed structs are only for reading.
package expand
