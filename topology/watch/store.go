package watch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/regularfile"
	"gridproxy/topology/state"

	"github.com/google/renameio/v2"
)

// The files in the folder of a Store.
const (
	currentState  = "state"          // what was enforced last
	previousState = "state.previous" // what was enforced before
	badState      = "state.bad-"     // + time: a file that cannot be read; at most one is kept
	unfinished    = ".state"         // + number: a write that did not end
)

// Store is the folder in which the last enforced state of a node lies, in two generations: a write
// that fails or is interrupted at any step leaves one that was whole before.
type Store struct {
	dir, node string
	now       func() time.Time
}

// NewStore makes a Store of a folder, which need not exist yet. Nothing is read or written.
func NewStore(dir, node string) *Store { return &Store{dir: dir, node: node, now: time.Now} }

// Load reads the newer generation, or the older one if that is bad. A file that is damaged, of
// another node or of another version is set aside. Problems say what was not used and why, one line
// each. False = there is no state, as on a new node.
func (s *Store) Load() (read state.State, problems []string, ok bool) {
	for _, path := range s.named(unfinished) { // of processes that ended while they wrote
		_ = os.Remove(path) // it only takes space
	}
	for _, name := range []string{currentState, previousState} {
		path := filepath.Join(s.dir, name)
		read, err := s.load(path)
		switch {
		case err == nil:
			return read, problems, true
		case errors.Is(err, fs.ErrNotExist):
			continue
		}
		fate := "it was left there"
		if unusable(err) {
			fate = s.setAside(path)
		}
		problems = append(problems, excerpt.Message(fmt.Sprintf("the saved state %s is not used: %v; %s", path, err, fate)))
	}
	return state.State{}, problems, false
}

// errOtherNode is that of a disk that was moved or copied, or of a node that was renamed.
var errOtherNode = errors.New("it is the state of another node")

func unusable(err error) bool {
	_, otherKind := errors.AsType[regularfile.KindError](err)
	return otherKind || errors.Is(err, state.ErrDamaged) || errors.Is(err, state.ErrVersion) || errors.Is(err, errOtherNode)
}

func (s *Store) load(path string) (state.State, error) {
	read, err := ReadState(path)
	if err == nil && read.Node != s.node {
		err = fmt.Errorf("%w, %s", errOtherNode, excerpt.Quoted(read.Node))
	}
	return read, err
}

// ReadState reads a file of a Store, and changes nothing. Its errors are those of
// regularfile.Open and state.Decode, or of reading.
func ReadState(path string) (state.State, error) {
	file, err := regularfile.Open(path)
	if err != nil {
		return state.State{}, err
	}
	defer file.Close() //nolint:errcheck // only read from
	content, err := io.ReadAll(io.LimitReader(file, state.MaxFile+1))
	if err != nil {
		return state.State{}, fmt.Errorf("reading it: %w", err)
	}
	return state.Decode(content)
}

// setAside renames a file, so that people can look at it, and removes the one that was set
// aside before. fate is a text that says where the file is now.
func (s *Store) setAside(path string) (fate string) {
	for _, old := range s.named(badState) {
		_ = os.Remove(old) // a second one only takes space
	}
	to := filepath.Join(s.dir, badState+s.now().UTC().Format("20060102T150405Z"))
	if err := os.Rename(path, to); err != nil {
		return fmt.Sprintf("it stays there: %v", err)
	}
	return "it is now " + to
}

// named returns the paths of the files in the folder whose names begin with prefix.
func (s *Store) named(prefix string) []string {
	entries, _ := os.ReadDir(s.dir) // there is none, or Load says why
	var paths []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			paths = append(paths, filepath.Join(s.dir, e.Name()))
		}
	}
	return paths
}

// Save writes a Snapshot as the newer generation, through to the disk, and returns its size in
// bytes. An error leaves at least one whole generation; one that wraps state.ErrTooLarge stays
// the same until the cluster is smaller.
func (s *Store) Save(snapshot topology.Snapshot, at time.Time) (bytes int64, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return 0, fmt.Errorf("making the folder for the state: %w", err)
	}
	current := filepath.Join(s.dir, currentState)
	file, err := renameio.NewPendingFile(current, renameio.WithTempDir(s.dir), renameio.WithPermissions(0o600))
	if err != nil {
		return 0, fmt.Errorf("making a file for the state in %s: %w", s.dir, withoutName(err))
	}
	defer file.Cleanup() //nolint:errcheck // a write that ended has none
	buffered := bufio.NewWriterSize(file, 64<<10)
	err = state.Encode(buffered, snapshot, at)
	for _, step := range []func() error{buffered.Flush, file.Sync} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return 0, fmt.Errorf("writing the state in %s: %w", s.dir, withoutName(err))
	}
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("writing the state in %s: %w", s.dir, withoutName(err))
	}
	if err := os.Rename(current, filepath.Join(s.dir, previousState)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("keeping the previous state: %w", err)
	}
	if err := file.CloseAtomicallyReplace(); err != nil {
		return 0, fmt.Errorf("replacing the state in %s: %w", s.dir, withoutName(err))
	}
	return info.Size(), s.syncDir()
}

// withoutName returns an error without the name of a file that has another one at each attempt,
// so that the same fault has the same text.
func withoutName(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", path.Op, path.Err)
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s: %w", link.Op, link.Err)
	}
	return err
}

// syncDir writes the folder through to the disk, so that the names of its files last, too.
func (s *Store) syncDir() error {
	dir, err := os.Open(s.dir)
	if err != nil {
		return fmt.Errorf("opening the folder of the state: %w", err)
	}
	defer dir.Close() //nolint:errcheck // only synced
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("writing the folder of the state: %w", err)
	}
	return nil
}
