package state

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// kind says what a frame holds. The numbers are part of the format.
type kind byte

const (
	kindSelf     kind = 1 // Node: this node's own object
	kindNode     kind = 2 // Node: only name and labels
	kindService  kind = 3 // Service
	kindSlice    kind = 4 // EndpointSlice
	kindDetails  kind = 5 // details, as JSON
	kindNames    kind = 6 // names, as JSON; before every slice, and only where names are enabled
	frameHeading      = 5 // bytes before the content
)

// details are the parts of a Snapshot that are no objects.
type details struct {
	LastKeys map[string][]string `json:"lastKeys,omitempty"`
	Watched  []string            `json:"watched"` // null = no node is missing
}

// names are what only DNS reads, besides what slices hold.
type names struct {
	Namespaces []string `json:"namespaces"`
	Grids      []grid   `json:"grids,omitempty"`
}

type grid struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// message is an API object.
type message interface {
	Size() int
	MarshalToSizedBuffer(b []byte) (int, error) // fills the end of b
}

type frames struct {
	to     io.Writer
	bytes  int64
	err    error  // the first one; later frames are not written
	buffer []byte // for one object
}

func (f *frames) object(k kind, m message) {
	if f.err != nil {
		return
	}
	size := m.Size()
	f.buffer = slices.Grow(f.buffer[:0], size)[:size]
	if _, err := m.MarshalToSizedBuffer(f.buffer); err != nil {
		f.err = fmt.Errorf("encoding an object: %w", err)
		return
	}
	f.write(k, f.buffer)
}

func (f *frames) write(k kind, content []byte) {
	if f.bytes += frameHeading + int64(len(content)); f.bytes > MaxBody && f.err == nil {
		f.err = ErrTooLarge
	}
	if f.err != nil {
		return
	}
	heading := [frameHeading]byte{byte(k)}
	binary.BigEndian.PutUint32(heading[1:], uint32(len(content))) //nolint:gosec // below MaxBody
	for _, part := range [][]byte{heading[:], content} {
		if _, f.err = f.to.Write(part); f.err != nil {
			return
		}
	}
}

// readFrames calls each for each frame until it fails, with content that is valid for the call.
func readFrames(from io.Reader, each func(k kind, content []byte) error) error {
	in := bufio.NewReaderSize(io.LimitReader(from, MaxBody), 64<<10)
	var heading [frameHeading]byte
	var content []byte
	for {
		switch _, err := io.ReadFull(in, heading[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		length := int64(binary.BigEndian.Uint32(heading[1:]))
		if length > MaxBody {
			return fmt.Errorf("%w: a frame has %d bytes", ErrDamaged, length)
		}
		var err error
		if content, err = readExactly(in, content[:0], length); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err := each(kind(heading[0]), content); err != nil {
			return err
		}
	}
}

// readExactly reads length bytes, and takes memory only for what is there. Fewer are an error.
func readExactly(in io.Reader, into []byte, length int64) ([]byte, error) {
	if int64(cap(into)) >= length {
		into = into[:length]
		_, err := io.ReadFull(in, into)
		return into, err
	}
	all, err := io.ReadAll(io.LimitReader(in, length))
	if err == nil && int64(len(all)) < length {
		err = io.ErrUnexpectedEOF
	}
	return all, err
}
