// Package changes finds what differs between two sorted lists of pointers, such as those of two
// Snapshots, and replaces elements of one.
//
// Invariant: a list that has been given away is never changed in place, so an element that is the
// same pointer is the same value, and a list that is the same array is the same list.
//
// Pure: lists in, elements out.
package changes
