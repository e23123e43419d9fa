// Package prose holds the rules of our English as data, and finds where comments and pages break
// them.
//
// Invariant: a rule names what to write instead.
//
// Pure. The command integration/prose/check reads the files.
package prose
