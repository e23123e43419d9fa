// Command layout reports where comments and pages break the rules of our English, in lines that are
// newer than a commit:
//
//	go run ./integration/manifests/layout COMMIT
//
// The rules are data, and each says what to write instead. The tests in this folder check the
// repository itself: which package may import which, how integration is divided, that its README
// files name what exists, that references resolve, and all that make docs checks on pages: links,
// commands, spelling and words.
package main
