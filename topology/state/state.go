package state

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"gridproxy/topology"
)

// Version is that of the files that Encode writes and Decode reads.
const Version = 1

// The largest file, and the largest body without compression, in bytes.
const (
	MaxFile = 64 << 20
	MaxBody = 512 << 20
)

var (
	// ErrTooLarge is an error of Encode: nothing useful has been written.
	ErrTooLarge = errors.New("the state is larger than a file may be")
	// ErrDamaged is an error of Decode: the file was truncated or altered, or is something else.
	ErrDamaged = errors.New("the file is damaged")
	// ErrVersion is an error of Decode: another version of gridproxy wrote the file.
	ErrVersion = errors.New("the file has a version that this program cannot read")
)

// Header says whose state a file holds, and of when.
type Header struct {
	Node string    `json:"node"`
	Time time.Time `json:"time"` // when the Snapshot was enforced last

	// Versions are the highest resource versions of the objects, by kind. They tell people how new
	// the state is. Nothing is decided by them.
	Versions map[string]string `json:"resourceVersions,omitempty"`
}

// State is the content of a file.
type State struct {
	Header

	// Snapshot has LastKeys, and no Host: a machine may have other addresses after a reboot. Its Saved
	// is Time.
	Snapshot topology.Snapshot
}

// Same reports whether two Snapshots of one source have the same content on disk. As objects are
// never changed in place, they are compared by pointer.
func Same(a, b topology.Snapshot) bool {
	return a.Node == b.Node && a.Self == b.Self &&
		slices.Equal(a.Services, b.Services) && slices.Equal(a.Slices, b.Slices) &&
		(a.Watched == nil) == (b.Watched == nil) && maps.Equal(a.Watched, b.Watched) &&
		(a.Namespaces == nil) == (b.Namespaces == nil) && slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.Grids, b.Grids) &&
		maps.EqualFunc(a.LastKeys, b.LastKeys, slices.Equal) && sameNodes(a, b)
}

func sameNodes(a, b topology.Snapshot) bool {
	if reflect.ValueOf(a.Nodes).Pointer() == reflect.ValueOf(b.Nodes).Pointer() {
		return true // the same map while no label of any Node changes
	}
	return maps.EqualFunc(a.Nodes, b.Nodes, maps.Equal)
}
