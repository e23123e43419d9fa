// Package excerpt shortens texts of unknown origin for log lines, Events and errors.
//
// Invariant: what Of and Quoted return is at most MaxChars characters long and, like what
// Line returns, contains printable characters only. It is pure.
package excerpt
