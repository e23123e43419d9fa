package boot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Sweep waits until alive ends, which it does with the process that holds its other end, and then removes the
// control groups of a name and some folders. The machines in them are about to end by then.
func Sweep(alive io.Reader, name string, folders []string) error {
	if _, err := io.Copy(io.Discard, alive); err != nil {
		return fmt.Errorf("waiting for the end of the cluster: %w", err)
	}
	hierarchies, err := mounted()
	if err != nil {
		return err
	}
	var errs []error
	for _, g := range hierarchies {
		errs = append(errs, eventually(func() error { return removeGroup(filepath.Join(g.Dir, name)) }))
	}
	for _, folder := range folders {
		errs = append(errs, eventually(func() error { return os.RemoveAll(folder) }))
	}
	return errors.Join(errs...)
}

// removeGroup removes a control group and those beneath it. It fails while there are processes in them.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, removeGroup(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func eventually(f func() error) error {
	deadline := time.Now().Add(patience / 4)
	for {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
