package excerpt

import (
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxChars is how many characters of one text of an object a message shows at most.
const MaxChars = 200

// MaxLineChars bounds a message that consists of several texts, such as a path, a name and a value.
const MaxLineChars = 5 * MaxChars

// Of returns text as one printable line of at most MaxChars characters. The end of a text that
// is too long is replaced by its length. A text that fits and is printable is returned unchanged.
func Of(text string) string { return limited(text, MaxChars, Line) }

// Quoted returns text between double quotes, as %q prints it, shortened as Of does. The quotes
// and escapes count.
func Quoted(text string) string { return limited(text, MaxChars, strconv.Quote) }

// Message returns a message that consists of several texts as one printable line of at most
// MaxLineChars characters.
func Message(text string) string { return limited(text, MaxLineChars, Line) }

// Fit returns text as one printable line of at most limit bytes. The middle of a text that is too
// long is replaced by the length of text: a message often says at its end what to do. A text that
// fits and is printable is returned unchanged. Below 32 bytes the result may be the length alone,
// and longer than limit.
func Fit(text string, limit int) string {
	if len(text) <= limit {
		if whole := Line(text); len(whole) <= limit {
			return whole
		}
	}
	mark := fmt.Sprintf("... (%d bytes) ... ", len(text))
	room := max(limit-len(mark), 0)
	end := fitted(text, 2*room/5, last)
	return fitted(text, room-len(end), first) + mark + end
}

// fitted returns as much of text as takes at most limit bytes as a printable line. part is a
// function that returns n characters of text: its first or its last ones.
func fitted(text string, limit int, part func(text string, n int) string) string {
	// shown characters fit, and one more does not.
	shown := sort.Search(limit, func(n int) bool { return len(Line(part(text, n+1))) > limit })
	return Line(part(text, shown))
}

// Line replaces each character that is not printable, line breaks included, and each byte that is
// not UTF-8 by its escape sequence in Go. Idempotent.
func Line(text string) string {
	for i, r := range text {
		if !printable(text[i:], r) {
			return escaped(text, i)
		}
	}
	return text
}

func escaped(text string, from int) string {
	var b strings.Builder
	b.WriteString(text[:from])
	for len(text) > from {
		r, size := utf8.DecodeRuneInString(text[from:])
		if part := text[from : from+size]; printable(part, r) {
			b.WriteString(part)
		} else {
			quoted := strconv.Quote(part)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		from += size
	}
	return b.String()
}

// printable reports whether r, the first character of text, is printable. U+FFFD itself is, a
// byte that is not UTF-8 is not.
func printable(text string, r rune) bool {
	if r == utf8.RuneError {
		_, size := utf8.DecodeRuneInString(text)
		return size > 1
	}
	return strconv.IsPrint(r)
}

// limited spells text and shortens it to limit characters. No more of text is spelled than can
// be shown, so that the cost does not depend on the size of text.
func limited(text string, limit int, spell func(string) string) string {
	if len(text) <= utf8.UTFMax*limit {
		if whole := spell(text); utf8.RuneCountInString(whole) <= limit {
			return whole
		}
	}
	end := fmt.Sprintf("... (%d bytes)", len(text))
	// shown characters fit, and one more does not.
	shown := sort.Search(limit, func(n int) bool { return utf8.RuneCountInString(spell(first(text, n+1)))+len(end) > limit })
	return spell(first(text, shown)) + end
}

// first returns the first n characters of text.
func first(text string, n int) string {
	end := 0
	for ; n > 0 && end < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[:end]
}

// last returns the last n characters of text.
func last(text string, n int) string {
	start := len(text)
	for ; n > 0 && start > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	return text[start:]
}

// MaxOutputBytes is how much of what a program prints is kept: a tool that fails may print
// without end.
const MaxOutputBytes = 64 << 10

// Output is an io.Writer that keeps the first MaxOutputBytes bytes written to it and discards the
// rest. The zero value is empty. It is not safe for concurrent use; os/exec calls it from one
// goroutine, also where it is both Stdout and Stderr.
type Output struct {
	kept []byte
	left bool // something was discarded
}

// Write never fails, so that the program can continue.
func (o *Output) Write(p []byte) (int, error) {
	n := min(len(p), MaxOutputBytes-len(o.kept))
	o.kept = append(o.kept, p[:n]...)
	o.left = o.left || n < len(p)
	return len(p), nil
}

// ReadFrom writes to o all that it reads from r. io.Copy calls it. It needs less memory than
// io.Copy itself, and most programs print nothing.
func (o *Output) ReadFrom(r io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{o}, r, make([]byte, 512))
}

// String returns what was kept, followed by "..." if something was discarded.
func (o *Output) String() string {
	if o.left {
		return string(o.kept) + "..."
	}
	return string(o.kept)
}
