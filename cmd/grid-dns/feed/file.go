package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"gridproxy/topology/dnsfeed"
	"gridproxy/topology/dnsview"
	"gridproxy/topology/regularfile"

	"github.com/google/renameio/v2"
)

// saver writes what is known to a file. The zero path writes nothing.
type saver struct {
	path  string
	log   *slog.Logger
	noted chan *Contents // the last one, until it is written
}

func newSaver(path string, log *slog.Logger) *saver {
	return &saver{path: path, log: log, noted: make(chan *Contents, 1)}
}

// note makes c the next Contents to write, in place of those that still wait to be written.
func (s *saver) note(c *Contents) {
	select {
	case <-s.noted:
	default:
	}
	s.noted <- c
}

// run writes until ctx ends, and then what still waits to be written.
func (s *saver) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			select {
			case c := <-s.noted:
				s.write(c)
			default:
			}
			return
		case c := <-s.noted:
			s.write(c)
		}
		select {
		case <-ctx.Done():
		case <-time.After(savePeriod):
		}
	}
}

func (s *saver) write(c *Contents) {
	if s.path == "" {
		return
	}
	var text bytes.Buffer
	err := dnsfeed.WriteFile(&text, c.Hello, c.Zone.View())
	if err == nil {
		err = renameio.WriteFile(s.path, text.Bytes(), 0o600)
	}
	if err != nil {
		s.log.Warn("what DNS says could not be kept for the next start, which waits for the daemon then", "file", s.path, "err", err)
	}
}

// readFile returns what the file holds; nil if it does not exist or cannot be read.
func readFile(c Config) *Contents {
	if c.File == "" {
		return nil
	}
	text, err := regularfile.Read(c.File, dnsfeed.MaxUpdate)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var hello dnsfeed.Hello
	var view dnsview.View
	if err == nil {
		hello, view, err = dnsfeed.ReadFile(text)
	}
	if err != nil {
		c.Log.Warn("what DNS said before the start cannot be read: the daemon is waited for", "file", c.File, "err", fmt.Errorf("reading it: %w", err))
		return nil
	}
	return newContents(hello, view, 0, c.Addrs)
}
