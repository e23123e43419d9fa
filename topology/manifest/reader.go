package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gridproxy/topology/regularfile"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stdin is the path that means standard input.
const Stdin = "-"

const stdinName = "standard input" // in messages

// Read reads manifests once: files, directories (their *.yaml, *.yml and *.json
// files, subdirectories and names that begin with a dot left out) and Stdin. Each warning
// is one line. The error joins everything that is wrong, one printable line each, 100 of them at
// most; the Objects are then of no use.
func Read(paths []string, stdin io.Reader) (Objects, []string, error) {
	return NewReader(paths, stdin).Read()
}

// manifestBytesMax bounds one file; 5,000 Services as kubectl prints them are some 20 MB.
const manifestBytesMax = 256 << 20

// racyPeriod is how long a further change of a file may leave its size and time the same, because
// file systems have coarse timestamps.
const racyPeriod = 2 * time.Second

// Reader reads manifests again and again, each file only when it changed. What a directory holds
// must be regular files; a path that is given may be a pipe, which is waited for.
type Reader struct {
	paths []string
	stdin io.Reader
	files map[string]*readFile
	last  assembled

	options   options
	unchanged bool // last was not made by the last Read
}

// assembled is the outcome of files.
type assembled struct {
	files    []*readFile // in this order; nil = there is no outcome
	objects  Objects
	warnings []string
	err      error
}

// readFile is a file as it was when it was last read.
type readFile struct {
	info   fs.FileInfo // nil = standard input
	settle bool        // it had only just been changed
	parsed parsed
}

// NewReader makes a Reader of the paths of Read, and reads nothing yet. Standard input is read
// once, if the paths name it. So are pipes.
func NewReader(paths []string, stdin io.Reader) *Reader {
	return &Reader{paths: paths, stdin: stdin, files: map[string]*readFile{}}
}

// WithNames makes r also read what DNS needs: Namespaces, StatefulSetGrids and more of
// EndpointSlices. It returns r. Call it before Read.
func (r *Reader) WithNames() *Reader {
	r.options.names = true
	return r
}

// Read reads everything that changed, and returns what the function Read returns. The Objects of
// unchanged files are the same pointers as before. If no file changed, the outcome is not made
// again: a file then costs one call of stat.
func (r *Reader) Read() (Objects, []string, error) {
	names, warnings, err := r.list()
	errs := []error{err}
	all := make([]*readFile, 0, len(names))
	files := make(map[string]*readFile, len(names))
	for _, name := range names {
		f, err := r.load(name)
		errs = append(errs, err)
		if err == nil {
			files[name] = f
			all = append(all, f)
		}
	}
	r.files = files
	r.unchanged = r.last.files != nil && slices.Equal(r.last.files, all)
	if !r.unchanged {
		texts := make([]parsed, len(all))
		for i, f := range all {
			texts[i] = f.parsed
		}
		r.last = assembled{files: all}
		r.last.objects, r.last.warnings, r.last.err = assemble(texts)
	}
	return r.last.objects, warned(slices.Concat(warnings, r.last.warnings)), join(append(errs, r.last.err))
}

// Unchanged reports whether the last Read found every file as the one before had left it.
func (r *Reader) Unchanged() bool { return r.unchanged }

// list returns the files that the paths name, each once, in the order of the paths and by name
// within a directory, also with an error, which joins the paths that cannot be read.
func (r *Reader) list() (names, warnings []string, err error) {
	var errs []error
	listed := map[string]bool{}
	if len(r.paths) == 0 {
		errs = append(errs, errors.New("no manifests are given; name a file, a directory or -"))
	}
	for _, path := range r.paths {
		found := []string{path}
		if path != Stdin {
			found, err = listPath(path)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if len(found) == 0 {
			warnings = append(warnings, path+": the directory holds no *.yaml, *.yml or *.json file")
		}
		for _, name := range found {
			if !listed[name] {
				names = append(names, name)
			}
			listed[name] = true
		}
	}
	return names, warnings, errors.Join(errs...)
}

func listPath(path string) ([]string, error) {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	var names []string
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if !IsName(e.Name()) {
			continue
		}
		if e.Type()&fs.ModeSymlink == 0 {
			if !e.IsDir() {
				names = append(names, name)
			}
			continue
		}
		// A dangling link is an error once it is read, not a file less.
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			names = append(names, name)
		}
	}
	return names, nil
}

// IsName reports whether a file of this name in a directory is read.
func IsName(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// load reads one file unless it is known to be the same as before: then it is the same pointer.
// Standard input and pipes can be read only once.
func (r *Reader) load(name string) (*readFile, error) {
	old, known := r.files[name]
	if known && (old.info == nil || !old.info.Mode().IsRegular()) {
		return old, nil
	}
	if name == Stdin {
		text, err := r.readStdin()
		if err != nil {
			return nil, err
		}
		return &readFile{parsed: r.options.parse(stdinName, text)}, nil
	}
	if known && !old.settle {
		if info, err := os.Stat(name); err == nil && same(old.info, info) {
			return old, nil
		}
	}
	file, err := r.open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, unreadable(name, err)
	}
	opened := time.Now()
	text, err := readAll(name, file)
	if err != nil {
		return nil, err
	}
	return &readFile{info: info, settle: opened.Sub(info.ModTime()) < racyPeriod, parsed: r.options.parse(name, text)}, nil
}

// open opens a path that was given, or a regular file of a directory. A process that can write to
// that directory must not be able to make the daemon wait for a FIFO or read a device.
func (r *Reader) open(name string) (*os.File, error) {
	if slices.ContainsFunc(r.paths, func(path string) bool { return filepath.Clean(path) == name }) {
		return os.Open(name)
	}
	return regularfile.Open(name)
}

func (r *Reader) readStdin() ([]byte, error) {
	if r.stdin == nil {
		return nil, fmt.Errorf("%s: is not available; name a file or a directory", stdinName)
	}
	return readAll(stdinName, r.stdin)
}

// same reports whether a file is as it was. Its time of change tells what the time of modification
// does not, which cp -p and tar set back: no program can set it.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && changeTime(a) == changeTime(b)
}

func changeTime(info fs.FileInfo) (t syscall.Timespec) {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		t = stat.Ctim
	}
	return t
}

func readAll(name string, from io.Reader) ([]byte, error) {
	text, err := regularfile.ReadAll(from, manifestBytesMax)
	if _, tooLarge := errors.AsType[regularfile.TooLargeError](err); tooLarge {
		return nil, fmt.Errorf("%s: is larger than %d MiB; split it", name, manifestBytesMax>>20)
	}
	if err != nil {
		return nil, unreadable(name, err)
	}
	return text, nil
}

// unreadable returns err with the name of the file and what to do.
func unreadable(name string, err error) error {
	if e, ok := errors.AsType[regularfile.KindError](err); ok {
		return fmt.Errorf("%s: %w; remove it, or give it a name that is not read", name, e)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s: cannot be read: %w; check the path and its permissions", name, err)
}

// Contents is what manifests hold, the kinds included that Objects does not have.
type Contents struct {
	Objects
	Further []Raw                    // of the kinds that were asked for, in the order of the files
	Skipped map[schema.GroupKind]int // how many objects of other kinds there are
}

// ReadWith does what Read does, and also returns the objects of further kinds.
func ReadWith(paths []string, stdin io.Reader, further ...schema.GroupVersionKind) (Contents, []string, error) {
	r := NewReader(paths, stdin)
	r.options.further = further
	return r.contents()
}

// ReadWithNames does what ReadWith does, with what DNS reads instead of further kinds.
func ReadWithNames(paths []string, stdin io.Reader) (Contents, []string, error) {
	return NewReader(paths, stdin).WithNames().contents()
}

func (r *Reader) contents() (Contents, []string, error) {
	objects, warnings, err := r.Read()
	c := Contents{Objects: objects, Skipped: map[schema.GroupKind]int{}}
	if err != nil {
		return c, warnings, err
	}
	for _, f := range r.last.files {
		c.Further = append(c.Further, f.parsed.raw...)
		for kind, n := range f.parsed.skipped {
			c.Skipped[kind] += n
		}
	}
	return c, warnings, nil
}
