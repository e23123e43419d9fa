// Package stream keeps connections to echo servers going while something happens to the network: short
// ones at a rate, and open ones that ask again and again. It keeps an account of them: how many there
// were, which were lost, when and by what error, and the slowest.
//
// A connection is lost when it is refused, reset, answered by another Pod than before, or not answered
// within a deadline that is longer than TCP needs to send a lost packet again. That alone is no loss.
// So an account says nothing about speed: it is for people to read.
//
// Invariant: a connection that was begun is in the account, however it ended, and nothing is asked after
// End. Not pure: this is all sockets.
package stream
