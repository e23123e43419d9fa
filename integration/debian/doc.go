// Package debian knows which Debian packages hold the programs that tests, demos and builds start,
// and installs those that are missing.
//
// Invariant: nothing is installed where all programs of a group are there, so a machine that has
// them needs neither root nor a package archive.
package debian
