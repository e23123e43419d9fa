// Package table prints the tables of both command lines.
//
// Invariant: a cell is one printable line of at most excerpt.MaxLineChars characters, whoever wrote
// its text, so that it can change neither another cell nor the terminal. Colours are written for
// words of state alone, to a writer that is Coloured. Pure, except for the writer.
package table
