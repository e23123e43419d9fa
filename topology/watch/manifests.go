package watch

import (
	"context"
	"errors"
	"io"
	"time"

	"gridproxy/topology"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// ReadManifests reads manifests once: files, directories (their *.yaml, *.yml and *.json
// files, subdirectories and names that begin with a dot left out) and Stdin. Each warning
// is one line. The error joins everything that is wrong, one line each; the Objects are
// then of no use.
func ReadManifests(paths []string, stdin io.Reader) (Objects, []string, error) {
	return Objects{}, nil, errors.ErrUnsupported
}

// ManifestConfig says which manifests to watch, and for whom.
type ManifestConfig struct {
	Paths []string  // as ReadManifests takes them
	Stdin io.Reader // read once, where Paths names it
	Node  string    // this node's name

	// Report is told of a read whose outcome is another than the last one's: the warnings,
	// or the error for which the last good Snapshot stays. nil = nobody is told.
	Report func(warnings []string, err error)

	Settle time.Duration // quiet after the last change before it is read; 0 = 100 ms
	Poll   time.Duration // look again without being told of a change; 0 = 10 s
}

// Manifests is the Source whose cluster is a set of manifests.
type Manifests struct {
	config ManifestConfig
}

// NewManifests makes the Source; nothing is read before Run.
func NewManifests(c ManifestConfig) *Manifests { return &Manifests{config: c} }

// Run reads the manifests, and again at every change, until ctx ends; it then returns nil.
// It fails only if the first read does.
func (m *Manifests) Run(ctx context.Context) error { return errors.ErrUnsupported }

// Snapshot is the state of the last good read.
func (m *Manifests) Snapshot() (topology.Snapshot, bool) { return topology.Snapshot{}, false }

// Changed receives after a read that changed something.
func (m *Manifests) Changed() <-chan struct{} { return nil }
