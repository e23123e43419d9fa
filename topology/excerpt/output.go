package excerpt

import "io"

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
