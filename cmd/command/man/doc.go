// Package man is the command of our programs that writes their man pages. It is apart from package
// command, because the DNS server of a node leaves it out, with the libraries that it links.
//
// Invariant: two builds of one commit write the same pages.
//
// Not pure: the command writes files.
package man
