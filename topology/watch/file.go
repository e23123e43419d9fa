package watch

import (
	"bytes"
	"cmp"
	"context"
	"time"
)

// FileConfig says which file to watch.
type FileConfig struct {
	Path string                 // may be a symbolic link, as in a volume of a ConfigMap
	Text []byte                 // its content, as it was read before
	Read func() ([]byte, error) // reads it, up to a limit

	// Accept says why other content is not acceptable. The file then counts as unchanged, and the
	// reason is reported. nil = any is.
	Accept func(text []byte) error

	// Report is called with the error if the file cannot be read or changes are noticed late, and with
	// nil once nothing is wrong any more. nil = no reports.
	Report func(error)

	Settle time.Duration // how long the file must stay unchanged before it is read; 0 = 100 ms
	Poll   time.Duration // look again without a notification; 0 = 10 s
}

// FileChanged waits until the file has other content than Text, which stays for the settling time,
// and returns true. It returns false if ctx ended first. A file that is removed, unreadable or not
// acceptable has not changed: it may be about to be replaced.
func FileChanged(ctx context.Context, c FileConfig) bool {
	settle, poll := cmp.Or(c.Settle, 100*time.Millisecond), cmp.Or(c.Poll, 10*time.Second)
	folders, unheard := newFolders([]string{c.Path})
	defer func() { _ = folders.close() }() // it was only read
	last, reported := c.Text, ""
	for {
		text, err := c.Read()
		next := poll
		switch {
		case err != nil:
			text = c.Text
		case bytes.Equal(text, c.Text):
		case !bytes.Equal(text, last):
			next = settle // it may be half written
		default:
			if c.Accept != nil {
				err = c.Accept(text)
			}
			if err == nil {
				return true
			}
		}
		last = text
		if err = cmp.Or(err, unheard); c.Report != nil && message(err) != reported && next == poll {
			c.Report(err)
			reported = message(err)
		}
		if !folders.wait(ctx, settle, next) {
			return false
		}
		unheard = folders.follow()
	}
}

// message returns the text of an error; "" = no error.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
