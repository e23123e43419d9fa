package regularfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// KindError says that a file is of another kind than a regular one.
type KindError struct {
	Kind string // such as "a FIFO"
}

func (e KindError) Error() string { return "is " + e.Kind + ", not a regular file" }

// Check returns a KindError if info is not that of a regular file, else nil.
func Check(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return KindError{"a directory"}
	case mode&fs.ModeNamedPipe != 0:
		return KindError{"a FIFO"}
	case mode&fs.ModeSocket != 0:
		return KindError{"a socket"}
	case mode&fs.ModeDevice != 0:
		return KindError{"a device"}
	default:
		return KindError{"of an unknown kind"}
	}
}

// Open opens a regular file, or a symbolic link to one, for reading. A file of another kind is
// a KindError; it never waits for one.
func Open(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err == nil {
		err = Check(info) // before it is opened: to open a device may change its state
	}
	if err != nil {
		return nil, err
	}
	// Another file may have taken its place since. O_NONBLOCK keeps a FIFO from waiting for a
	// writer.
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil {
		err = Check(info)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// TooLargeError says that a text is longer than the limit of its reader.
type TooLargeError struct {
	Limit int64 // bytes
}

func (e TooLargeError) Error() string { return fmt.Sprintf("is larger than %d bytes", e.Limit) }

// Read reads a regular file whole, as Open finds it, which includes those of /proc and /sys.
// One of more than limit bytes is a TooLargeError.
func Read(name string, limit int64) ([]byte, error) {
	file, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadAll(file, limit)
}

// ReadAll reads r to its end. More than limit bytes are a TooLargeError.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, TooLargeError{limit}
	}
	return text, nil
}
