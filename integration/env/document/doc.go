// Package document runs the commands that a page shows, as its reader would, so that a test can
// prove the page. Parse takes a page apart; Shell runs what is below a heading, Session one command
// after the other; Compare says whether the output is the one that the page shows.
//
// Invariant: what is run stands on the page, to the byte; a heading without commands is an error.
// Pages are pure, and so is Document, except that it reads its file; Shell and Session start
// processes in a folder of their own.
package document
