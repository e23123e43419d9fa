package dnsfeed

import (
	"fmt"
	"io"

	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// Reader reads one side of a feed. After an error it is of no use any more. One goroutine may use
// it.
type Reader struct {
	codec  codec
	from   io.Reader
	buffer []byte
	err    error
}

// NewReader makes a Reader that has read nothing yet. Give it a buffer: a frame is two reads.
func NewReader(from io.Reader) *Reader {
	c, err := newCodec()
	return &Reader{codec: c, from: from, err: err}
}

func (r *Reader) next() (kind, []byte, error) {
	if r.err != nil {
		return 0, nil, r.err
	}
	k, content, err := readFrame(r.from, r.buffer)
	if err != nil {
		return 0, nil, err
	}
	r.buffer = content
	return k, content, nil
}

// Hello reads the greeting, which comes first. One of another version is an ErrVersion.
func (r *Reader) Hello() (h Hello, err error) {
	k, content, err := r.next()
	switch {
	case err != nil:
		return Hello{}, err
	case k != kindHello:
		return Hello{}, fmt.Errorf("%w: it begins with a frame of kind %d", ErrMalformed, k)
	}
	if err := r.codec.decode(content, &h); err != nil {
		return Hello{}, err
	}
	if h.Version != Version {
		return Hello{}, fmt.Errorf("%w: %d, and this program speaks %d", ErrVersion, h.Version, Version)
	}
	return h, nil
}

// Report reads the next Report, and skips all other frames.
func (r *Reader) Report() (out Report, err error) {
	for {
		k, content, err := r.next()
		if err != nil {
			return Report{}, err
		}
		if k == kindReport {
			err := r.codec.decode(content, &out)
			return out, err
		}
	}
}

// Update reads up to the end of the next update. More than MaxUpdate bytes are an ErrTooLarge.
func (r *Reader) Update() (Update, error) {
	a := assembly{codec: r.codec}
	for {
		k, content, err := r.next()
		if err != nil {
			return Update{}, err
		}
		if a.bytes += len(content); a.bytes > MaxUpdate {
			return Update{}, fmt.Errorf("%w: an update of more than %d bytes", ErrTooLarge, MaxUpdate)
		}
		done, err := a.take(k, content)
		if done || err != nil {
			return a.update, err
		}
	}
}

// assembly puts the frames of an update together.
type assembly struct {
	codec  codec
	update Update
	bytes  int
	open   *dnsview.Names // more parts of it follow
}

// take takes a frame, and reports whether the update is whole.
func (a *assembly) take(k kind, content []byte) (done bool, err error) {
	if a.open != nil && k != kindService {
		return false, fmt.Errorf("%w: a part of Service %s is missing", ErrMalformed, a.open.Service)
	}
	switch k {
	case kindService:
		return false, a.service(content)
	case kindRemoved:
		var part wireRemoved
		err = a.codec.decode(content, &part)
		a.update.Removed = append(a.update.Removed, decodeNames(part.Names)...)
	case kindNamespaces:
		var part wireNamespaces
		err = a.codec.decode(content, &part)
		a.update.Namespaces = append(a.update.Namespaces, part.Names...)
	case kindCommit:
		var end wireCommit
		err = a.codec.decode(content, &end)
		a.update.Generation, a.update.Whole, a.update.NewNamespaces = end.Generation, end.Whole, end.NewNamespaces
		a.update.Later = decodeNames(end.Later)
		return err == nil, err
	case kindHello:
		return false, fmt.Errorf("%w: a second greeting", ErrMalformed)
	}
	return false, err
}

// service takes a Service or a further part of one. Services come sorted, each once.
func (a *assembly) service(content []byte) error {
	var part wireService
	if err := a.codec.decode(content, &part); err != nil {
		return err
	}
	svc := a.open
	switch {
	case svc == nil:
		svc = part.service()
		if n := len(a.update.Services); n > 0 && dnsview.Compare(a.update.Services[n-1], svc) >= 0 {
			return fmt.Errorf("%w: Service %s is out of order", ErrMalformed, svc.Service)
		}
		a.update.Services = append(a.update.Services, svc)
	case svc.Service != types.NamespacedName(part.Name):
		return fmt.Errorf("%w: a part of Service %s is missing", ErrMalformed, svc.Service)
	}
	a.open = nil
	if part.More {
		a.open = svc
	}
	return part.add(svc)
}
