package watch

import (
	"cmp"
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/manifest"
)

// ManifestConfig says which manifests to watch, and for whom.
type ManifestConfig struct {
	Paths []string  // as manifest.Read takes them
	Stdin io.Reader // read once, where Paths names it; so are pipes
	Node  string    // this node's name
	DNS   bool      // what DNS reads is read too

	// Report is called after a read with another outcome than the last one: with the warnings, or
	// with the error because of which the last good Snapshot stays. Both are nil once nothing is
	// wrong any more. nil = no reports.
	Report func(warnings []string, err error)

	Settle time.Duration // how long files must stay unchanged before they are read; 0 = 100 ms
	Poll   time.Duration // look again without a notification, or later: see pollPeriod; 0 = 10 s
}

// Manifests is the Source whose cluster is a set of manifests. A file that is removed removes its
// objects. A file that is unreadable or empty changes nothing.
type Manifests struct {
	config  ManifestConfig
	reader  *manifest.Reader
	changed pulse
	outcome string               // of the last read, as reported
	loss    atomic.Pointer[Loss] // nil = the last read succeeded

	mu       sync.Mutex
	known    bool
	objects  manifest.Objects
	snapshot topology.Snapshot
}

// NewManifests makes the Source; nothing is read before Read or Run.
func NewManifests(c ManifestConfig) *Manifests {
	c.Settle = cmp.Or(c.Settle, 100*time.Millisecond)
	c.Poll = cmp.Or(c.Poll, 10*time.Second)
	reader := manifest.NewReader(c.Paths, c.Stdin)
	if c.DNS {
		reader = reader.WithNames()
	}
	return &Manifests{config: c, reader: reader, changed: newPulse()}
}

// Read reads the manifests once, so that a mistake in them is reported before anything else is
// done. Run reports the warnings. Read must not be called after Run.
func (m *Manifests) Read() error {
	_, err := m.read()
	return err
}

// Run reads the manifests, and again at every change, until ctx ends; it then returns nil.
// It fails only if nothing was read before and the first read fails.
func (m *Manifests) Run(ctx context.Context) error {
	folders, unheard := newFolders(m.config.Paths)
	defer func() { _ = folders.close() }() // it was only read
	warnings, err := m.read()
	if _, known := m.Snapshot(); !known {
		return err
	}
	m.report(withError(warnings, unheard), err)
	var look time.Duration // what it takes to find that nothing has changed
	for folders.wait(ctx, m.config.Settle, pollPeriod(m.config.Poll, look, unheard == nil)) {
		begin := time.Now()
		unheard = folders.follow()
		warnings, err := m.read()
		if m.reader.Unchanged() {
			look = time.Since(begin)
		}
		m.report(withError(warnings, unheard), err)
	}
	return nil
}

// pollMax bounds the poll period of a directory that is slow to read, such as one on a network.
const pollMax = time.Minute

// pollPeriod returns after what time to look again without a notification. To look is to call
// stat for each file. That takes at most a thousandth of the time, however many files there are,
// and a hundredth if some changes are not notified. look is what it took last. Pure.
func pollPeriod(poll, look time.Duration, notified bool) time.Duration {
	share := 100 * look
	if notified {
		share = 1000 * look
	}
	return max(poll, min(share, pollMax))
}

// withError returns warnings with the text of err, unless it is nil.
func withError(warnings []string, err error) []string {
	if err == nil {
		return warnings
	}
	return append(warnings, err.Error())
}

// read replaces the current objects by those of a good read, keeps the pointers of those that
// are equal, and signals a change. After an error they stay.
func (m *Manifests) read() (warnings []string, err error) {
	read, warnings, err := m.reader.Read()
	if err != nil {
		return warnings, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if objects, changed := read.Reuse(m.objects); changed || !m.known {
		m.known, m.objects, m.snapshot = true, objects, objects.Snapshot(m.config.Node)
		m.changed.send()
	}
	return warnings, nil
}

func (m *Manifests) report(warnings []string, err error) {
	outcome := strings.Join(warnings, "\n")
	if err != nil {
		outcome = err.Error()
		m.loss.Store(&Loss{Since: cmp.Or(m.Lost().Since, time.Now()), Reason: outcome})
	} else {
		m.loss.Store(nil)
	}
	if outcome != m.outcome && m.config.Report != nil {
		m.config.Report(warnings, err)
	}
	m.outcome = outcome
}

// Lost returns since when, and why, the manifests cannot be read; zero = the last read succeeded.
// Safe for concurrent use.
func (m *Manifests) Lost() Loss {
	if loss := m.loss.Load(); loss != nil {
		return *loss
	}
	return Loss{}
}

// Snapshot returns the state of the last good read; false = there was no good read yet.
func (m *Manifests) Snapshot() (topology.Snapshot, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot, m.known
}

// Changed receives after a read that changed something.
func (m *Manifests) Changed() <-chan struct{} { return m.changed }

var _ Source = (*Manifests)(nil)
