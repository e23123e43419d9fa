// Package traffic keeps connections to echo servers going while something happens to the network:
// short ones at a rate or one after the other, and open ones that ask again and again. It keeps an
// account of them: how many there were, which were lost, when and by what error, and the slowest.
//
// A connection is lost when it is refused, reset, answered by another Pod than before, or not
// answered within a deadline that is longer than TCP needs to send a lost packet again. That alone
// is no loss, nor is a machine that stands still: others must have been answered meanwhile. So an
// account says nothing about speed: it is for people to read.
//
// A Load asks at a fixed rate. It judges speed only of itself: its Pacer records when it comes
// late, and a loss near such a moment counts as nothing.
//
// Invariants: a connection that was begun is in the account, however it ended; no question comes
// after End; no connection has the port of another that is open, or that kernels still remember.
// Not pure: this is all sockets.
package traffic
