// Package layout has the tests of the repository itself: which package may import which, how
// integration is divided, that its README files name what exists, that references resolve, and all
// that make docs checks on pages: links, commands, spelling and words.
package layout
