package state

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/object"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// The parts of a file that have one length.
const (
	leadLength   = len(magic) + 4 + 4
	footerLength = 8 + sha256.Size
)

// Decode reads a file. Its errors wrap ErrDamaged or ErrVersion.
func Decode(file []byte) (State, error) {
	header, body, err := open(file)
	if err != nil {
		return State{}, err
	}
	s := State{Header: header}
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	d := decoder{trim: &object.Trimmer{}, into: &s.Snapshot}
	s.Snapshot.Node, s.Snapshot.Nodes, s.Snapshot.Saved = header.Node, map[string]labels.Set{}, header.Time
	if err := readFrames(unpacked, d.frame); err != nil {
		return State{}, err
	}
	if !d.whole {
		return State{}, fmt.Errorf("%w: its last frame is missing", ErrDamaged)
	}
	slices.SortFunc(s.Snapshot.Services, topology.CompareObjects)
	slices.SortFunc(s.Snapshot.Slices, topology.CompareObjects)
	return s, nil
}

// open checks a file, and returns its header and the compressed body.
func open(file []byte) (h Header, body []byte, err error) {
	damaged := func(format string, args ...any) (Header, []byte, error) {
		return Header{}, nil, fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
	}
	switch {
	case len(file) > MaxFile:
		return damaged("it is larger than %d bytes", MaxFile)
	case len(file) < leadLength+footerLength || string(file[:len(magic)]) != magic:
		return damaged("it is truncated, or no state of gridproxy")
	}
	content := file[:len(file)-sha256.Size]
	if sum := sha256.Sum256(content); !bytes.Equal(sum[:], file[len(content):]) {
		return damaged("its checksum is wrong")
	}
	content = content[:len(content)-8]
	if length := binary.BigEndian.Uint64(file[len(content):]); length != uint64(len(content)) {
		return damaged("it has %d bytes of %d", len(content), length)
	}
	if version := binary.BigEndian.Uint32(content[len(magic):]); version != Version {
		return Header{}, nil, fmt.Errorf("%w: it is %d, this program reads %d", ErrVersion, version, Version)
	}
	length := int64(binary.BigEndian.Uint32(content[len(magic)+4:]))
	rest := content[leadLength:]
	if length > int64(len(rest)) {
		return damaged("its header does not end")
	}
	if err := json.Unmarshal(rest[:length], &h); err != nil {
		return damaged("its header: %v", err)
	}
	return h, rest[length:], nil
}

// decoder puts frames into a Snapshot.
type decoder struct {
	trim  *object.Trimmer
	into  *topology.Snapshot
	whole bool // details were there, which come last
}

func (d *decoder) frame(k kind, content []byte) error {
	var err error
	switch k {
	case kindSelf:
		var n corev1.Node
		if err = n.Unmarshal(content); err == nil {
			d.into.Self = d.trim.Node(&n)
		}
	case kindNode:
		var n corev1.Node
		if err = n.Unmarshal(content); err == nil {
			d.into.Nodes[n.Name] = n.Labels
		}
	case kindService:
		var s corev1.Service
		if err = s.Unmarshal(content); err == nil {
			d.into.Services = append(d.into.Services, d.trim.Service(&s))
		}
	case kindSlice:
		var s discoveryv1.EndpointSlice
		if err = s.Unmarshal(content); err == nil {
			d.into.Slices = append(d.into.Slices, d.trim.Slice(&s))
		}
	case kindNames:
		var more names
		if err = json.Unmarshal(content, &more); err == nil {
			d.names(more)
		}
	case kindDetails:
		var more details
		if err = json.Unmarshal(content, &more); err == nil {
			d.details(more)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// names takes over Namespaces and Grids, and has the slices that follow read with names.
func (d *decoder) names(more names) {
	d.trim.Names = true
	d.into.Namespaces = append([]string{}, more.Namespaces...) // not nil
	for _, g := range more.Grids {
		d.into.Grids = append(d.into.Grids, types.NamespacedName{Namespace: g.Namespace, Name: g.Name})
	}
	slices.Sort(d.into.Namespaces)
	slices.SortFunc(d.into.Grids, topology.CompareServices)
}

func (d *decoder) details(more details) {
	d.whole = true
	d.into.LastKeys = make(map[types.UID][]string, len(more.LastKeys))
	for uid, keys := range more.LastKeys {
		d.into.LastKeys[types.UID(uid)] = keys
	}
	if more.Watched == nil {
		return
	}
	d.into.Watched = make(map[string]bool, len(more.Watched))
	for _, key := range more.Watched {
		d.into.Watched[key] = true
	}
}
