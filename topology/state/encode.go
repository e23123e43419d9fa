package state

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"time"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const magic = "GRIDSTAT"

// Encode writes a file for a Snapshot that was enforced at that time, or returns ErrTooLarge.
// The same Snapshot and time give the same bytes.
func Encode(w io.Writer, s topology.Snapshot, at time.Time) error {
	return encodeWithin(&summed{to: w, sum: sha256.New(), limit: MaxFile}, s, at)
}

func encodeWithin(out *summed, s topology.Snapshot, at time.Time) error {
	header, err := json.Marshal(Header{Node: s.Node, Time: at.UTC(), Versions: highest(s)})
	if err != nil {
		return fmt.Errorf("encoding the header: %w", err)
	}
	out.limit -= footerLength
	out.lead(header)
	if out.err == nil {
		out.err = compressed(out, func(to io.Writer) error { return writeBody(to, s) })
	}
	out.limit += footerLength
	_, _ = out.Write(binary.BigEndian.AppendUint64(nil, uint64(out.bytes))) //nolint:gosec // not negative
	_, _ = out.Write(out.sum.Sum(nil))                                      // the error stays
	return out.err
}

func compressed(out io.Writer, write func(io.Writer) error) error {
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(packed, 64<<10)
	if err := write(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return packed.Close()
}

func writeBody(to io.Writer, s topology.Snapshot) error {
	body := &frames{to: to}
	if s.Namespaces != nil {
		text, err := json.Marshal(newNames(s))
		if err != nil {
			return fmt.Errorf("encoding the Namespaces and Grids: %w", err)
		}
		body.write(kindNames, text)
	}
	if s.Self != nil {
		body.object(kindSelf, s.Self)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Nodes)) {
		body.object(kindNode, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.Nodes[name]}})
	}
	for _, svc := range s.Services {
		body.object(kindService, svc)
	}
	for _, slice := range s.Slices {
		body.object(kindSlice, slice.Object())
	}
	text, err := json.Marshal(newDetails(s))
	if err != nil {
		return fmt.Errorf("encoding the topology keys: %w", err)
	}
	body.write(kindDetails, text)
	return body.err
}

func newNames(s topology.Snapshot) names {
	n := names{Namespaces: s.Namespaces}
	for _, g := range s.Grids {
		n.Grids = append(n.Grids, grid{g.Namespace, g.Name})
	}
	return n
}

func newDetails(s topology.Snapshot) details {
	d := details{LastKeys: make(map[string][]string, len(s.LastKeys))}
	for uid, keys := range s.LastKeys {
		d.LastKeys[string(uid)] = keys
	}
	if s.Watched != nil {
		d.Watched = []string{}
	}
	for key, watched := range s.Watched {
		if watched {
			d.Watched = append(d.Watched, key)
		}
	}
	slices.Sort(d.Watched)
	return d
}

// highest returns the highest resource versions, which are decimal numbers (KEP-5504), by kind.
func highest(s topology.Snapshot) map[string]string {
	out := map[string]string{}
	note := func(kind, version string) {
		if before := out[kind]; len(version) > len(before) || len(version) == len(before) && version > before {
			out[kind] = version
		}
	}
	for _, svc := range s.Services {
		note("services", svc.ResourceVersion)
	}
	for _, slice := range s.Slices {
		note("endpointslices", slice.ResourceVersion)
	}
	if s.Self != nil {
		note("node", s.Self.ResourceVersion)
	}
	return out
}

// summed writes a file, and knows its checksum.
type summed struct {
	to    io.Writer
	sum   hash.Hash
	limit int64 // of bytes, without room for the footer until the body is written
	bytes int64
	err   error // the first one
}

// Write implements io.Writer. Its first error, such as ErrTooLarge, is that of all later calls.
func (s *summed) Write(p []byte) (n int, err error) {
	if s.err == nil && s.bytes+int64(len(p)) > s.limit {
		s.err = ErrTooLarge
	}
	if s.err != nil {
		return 0, s.err
	}
	n, s.err = s.to.Write(p)
	s.sum.Write(p[:n])
	s.bytes += int64(n)
	return n, s.err
}

// lead writes what is before the body. Its error is in s.
func (s *summed) lead(header []byte) {
	lead := binary.BigEndian.AppendUint32([]byte(magic), Version)
	lead = binary.BigEndian.AppendUint32(lead, uint32(len(header))) //nolint:gosec // some 200 bytes
	_, _ = s.Write(append(lead, header...))                         // the error stays
}
