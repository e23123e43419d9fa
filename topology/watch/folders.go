package watch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gridproxy/topology/manifest"

	"github.com/fsnotify/fsnotify"
)

// interest is what must be watched to notice every change of some paths: directories, and the
// relevant names in each. Directories are watched and not files, because editors replace files and
// the kubelet swaps links.
type interest map[string]names

// names are the relevant ones in one directory.
type names struct {
	manifests bool // whatever is called like a manifest
	named     map[string]bool
}

func (n names) count(name string) bool {
	return n.named[name] || n.manifests && manifest.IsName(name)
}

func (in interest) name(dir, name string) {
	n := in[dir]
	if n.named == nil {
		n.named = map[string]bool{}
	}
	n.named[name] = true
	in[dir] = n
}

// linksMax is how many symbolic links Linux follows in one path.
const linksMax = 40

func interestOf(paths []string) interest {
	in := interest{}
	for _, path := range paths {
		if path == manifest.Stdin {
			continue
		}
		resolved, ok := in.follow(path)
		entries, err := os.ReadDir(resolved)
		if !ok || err != nil {
			continue // a file, or not there yet
		}
		n := in[resolved]
		n.manifests = true
		in[resolved] = n
		for _, e := range entries {
			if manifest.IsName(e.Name()) && e.Type()&fs.ModeSymlink != 0 {
				in.follow(filepath.Join(resolved, e.Name()))
			}
		}
	}
	return in
}

// follow adds to the interest every link on the way to a path, its target, or the first element
// that does not exist. It returns the path without links, and false in the last case.
func (in interest) follow(path string) (string, bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	dir, rest := "/", strings.Split(strings.Trim(path, "/"), "/")
	for links := 0; len(rest) > 0 && links <= linksMax; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir)
			continue
		}
		at := filepath.Join(dir, name)
		target, err := os.Readlink(at)
		isLink := err == nil
		if _, err := os.Lstat(at); err != nil || isLink || len(rest) == 0 {
			in.name(dir, name)
			if err != nil {
				return at, false
			}
		}
		if !isLink {
			dir = at
			continue
		}
		links++
		if filepath.IsAbs(target) {
			dir = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return dir, len(rest) == 0
}

// folders notices changes to the files under some paths.
type folders struct {
	paths    []string
	watcher  *fsnotify.Watcher // nil = the kernel has none left
	interest interest
}

// newFolders begins to watch. An error means that some changes are not signalled; the poll period
// still finds them.
func newFolders(paths []string) (*folders, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return &folders{paths: paths}, unheard(err)
	}
	f := &folders{paths: paths, watcher: w}
	return f, f.follow()
}

func unheard(err error) error {
	return fmt.Errorf("changes of files are noticed late: %w; raise fs.inotify.max_user_instances and max_user_watches", err)
}

func (f *folders) close() error {
	if f.watcher == nil {
		return nil
	}
	return f.watcher.Close()
}

// follow watches the directories that exist now. The error is as for newFolders.
func (f *folders) follow() error {
	if f.watcher == nil {
		return nil
	}
	f.interest = interestOf(f.paths)
	watched := map[string]bool{}
	for _, dir := range f.watcher.WatchList() {
		watched[dir] = true
		if _, wanted := f.interest[dir]; !wanted {
			_ = f.watcher.Remove(dir) // it may have been removed
		}
	}
	var first error
	for dir := range f.interest {
		if watched[dir] {
			continue
		}
		if err := f.watcher.Add(dir); err != nil && first == nil && !os.IsNotExist(err) {
			first = unheard(fmt.Errorf("%s: %w", dir, err))
		}
	}
	return first
}

// wait returns once the paths may have changed and then stayed unchanged for the settling time, or
// after the poll period. It returns false if ctx ended first.
func (f *folders) wait(ctx context.Context, settle, poll time.Duration) bool {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	var deadline time.Time // for changes that never stop
	events, errs := f.channels()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case e := <-events:
			if !f.counts(e) {
				continue
			}
		case <-errs: //nolint:errcheck // events were lost; the folders are read again
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(10 * settle)
		}
		timer.Reset(min(settle, time.Until(deadline)))
	}
}

func (f *folders) channels() (<-chan fsnotify.Event, <-chan error) {
	if f.watcher == nil {
		return nil, nil
	}
	return f.watcher.Events, f.watcher.Errors
}

// counts reports whether an event may change what is read. The watcher drops a watched directory
// that is replaced; that event counts as a name in the parent directory.
func (f *folders) counts(e fsnotify.Event) bool {
	return f.interest[filepath.Dir(e.Name)].count(filepath.Base(e.Name))
}
