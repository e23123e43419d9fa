package dnsfeed

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"gridproxy/topology/dnsview"
)

// WriteFile writes a View with the greeting that it came with, and a SHA-256 of both at the end.
func WriteFile(to io.Writer, h Hello, v dnsview.View) error {
	sum := sha256.New()
	w := NewWriter(io.MultiWriter(to, sum))
	if err := errors.Join(w.Hello(h), w.Update(WholeOf(v))); err != nil {
		return err
	}
	_, err := to.Write(sum.Sum(nil))
	return err
}

// ReadFile reads what WriteFile wrote. Nothing is read of a file whose checksum is wrong.
func ReadFile(file []byte) (Hello, dnsview.View, error) {
	damaged := func(err error) (Hello, dnsview.View, error) { return Hello{}, dnsview.View{}, err }
	if len(file) < sha256.Size {
		return damaged(fmt.Errorf("%w: the file has %d bytes", ErrMalformed, len(file)))
	}
	content := file[:len(file)-sha256.Size]
	if sum := sha256.Sum256(content); !bytes.Equal(sum[:], file[len(content):]) {
		return damaged(fmt.Errorf("%w: the checksum is wrong", ErrMalformed))
	}
	from := bytes.NewReader(content)
	r := NewReader(from)
	h, err := r.Hello()
	if err != nil {
		return damaged(err)
	}
	u, err := r.Update()
	switch {
	case err != nil:
		return damaged(err)
	case !u.Whole || from.Len() > 0:
		return damaged(fmt.Errorf("%w: no whole view, or more than one", ErrMalformed))
	}
	v := u.View()
	v.Node = h.Node
	return h, v, nil
}
