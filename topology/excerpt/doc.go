// Package excerpt shortens untrusted text for log lines, Events and errors.
//
// Invariant: what Of and Quoted return has at most MaxChars characters, what Fit returns has at
// most as many bytes as it was asked for. It contains only printable characters, as does the result
// of Line. Pure.
package excerpt
