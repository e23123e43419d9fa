package dnsfeed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"
)

// Version is that of the protocol. Two programs of different versions do not talk to each other.
const Version = 1

const heading = 5 // bytes: length and kind

// ErrMalformed means that what was read is no frame of this protocol, or out of place.
var ErrMalformed = errors.New("malformed feed")

// ErrVersion means that the other side speaks another version.
var ErrVersion = errors.New("another version of the feed")

// ErrTooLarge means that something is above its limit.
var ErrTooLarge = errors.New("too large for the feed")

// kind says what a frame holds. The numbers are part of the protocol.
type kind byte

const (
	kindHello      kind = 1
	kindService    kind = 2 // a Service, or a part of one
	kindRemoved    kind = 3
	kindNamespaces kind = 4 // a part of them
	kindCommit     kind = 5
	kindReport     kind = 6
)

// codec encodes and decodes contents. Both are safe for concurrent use.
type codec struct {
	enc cbor.EncMode
	dec cbor.DecMode
}

func newCodec() (codec, error) {
	enc, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		return codec{}, fmt.Errorf("making an encoder: %w", err)
	}
	dec, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 8, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
	}.DecMode()
	if err != nil {
		return codec{}, fmt.Errorf("making a decoder: %w", err)
	}
	return codec{enc: enc, dec: dec}, nil
}

// frame returns a content, encoded, with its heading. It returns ErrTooLarge if that exceeds
// MaxFrame.
func (c codec) frame(k kind, content any) ([]byte, error) {
	body, err := c.enc.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding a frame: %w", err)
	}
	if len(body)+1 > MaxFrame {
		return nil, fmt.Errorf("%w: a frame of %d bytes, the limit is %d", ErrTooLarge, len(body)+1, MaxFrame)
	}
	out := make([]byte, heading, heading+len(body))
	binary.BigEndian.PutUint32(out, uint32(len(body)+1)) //nolint:gosec // at most MaxFrame
	out[4] = byte(k)
	return append(out, body...), nil
}

func (c codec) decode(content []byte, into any) error {
	if err := c.dec.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// readFrame reads one frame, into buffer if that is large enough. The error is io.EOF between
// two frames, and wraps ErrMalformed within one.
func readFrame(in io.Reader, buffer []byte) (k kind, content []byte, err error) {
	var head [heading]byte
	if n, err := io.ReadFull(in, head[:]); err != nil {
		if n > 0 {
			err = fmt.Errorf("%w: it ends within a frame: %w", ErrMalformed, err)
		}
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length == 0 || length > MaxFrame {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes, the limit is %d", ErrMalformed, length, MaxFrame)
	}
	if cap(buffer) < int(length)-1 {
		buffer = make([]byte, length-1)
	}
	content = buffer[:length-1]
	if _, err := io.ReadFull(in, content); err != nil {
		return 0, nil, fmt.Errorf("%w: it ends within a frame: %w", ErrMalformed, err)
	}
	return kind(head[4]), content, nil
}
