package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFileChanged: other content counts, however it gets into the file. A file that is written
// again, touched, removed or made unreadable has not changed.
func TestFileChanged(t *testing.T) {
	const first, second = "mode: iptables\n", "mode: ipvs\n"
	// revision makes a folder as the kubelet makes it for each version of a ConfigMap.
	revision := func(t *testing.T, dir, name, text string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name, "config.conf"), []byte(text), 0o600))
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	volume := func(t *testing.T, dir string) string {
		revision(t, dir, "..1", first)
		must(t, os.Symlink("..data/config.conf", filepath.Join(dir, "config.conf")))
		return filepath.Join(dir, "config.conf")
	}
	plain := func(t *testing.T, dir string) string {
		file := filepath.Join(dir, "config.conf")
		must(t, os.WriteFile(file, []byte(first), 0o600))
		return file
	}
	for _, test := range []struct {
		name    string
		make    func(t *testing.T, dir string) string
		change  func(t *testing.T, dir, file string)
		changed bool

		unreadable bool // after the change
	}{
		{"written", plain, func(t *testing.T, _, file string) { must(t, os.WriteFile(file, []byte(second), 0o600)) }, true, false},
		{"emptied", plain, func(t *testing.T, _, file string) { must(t, os.Truncate(file, 0)) }, true, false},
		{"replaced", plain, func(t *testing.T, dir, file string) {
			must(t, os.WriteFile(file+".new", []byte(second), 0o600))
			must(t, os.Rename(file+".new", file))
		}, true, false},
		{"a ConfigMap", volume, func(t *testing.T, dir, _ string) {
			revision(t, dir, "..2", second)
			must(t, os.RemoveAll(filepath.Join(dir, "..1")))
		}, true, false},
		{"a ConfigMap, twice", volume, func(t *testing.T, dir, _ string) {
			revision(t, dir, "..2", first)
			must(t, os.RemoveAll(filepath.Join(dir, "..1")))
			revision(t, dir, "..3", second)
		}, true, false},
		{"removed and made again", plain, func(t *testing.T, _, file string) {
			must(t, os.Remove(file))
			must(t, os.WriteFile(file, []byte(second), 0o600))
		}, true, false},
		{"written again", plain, func(t *testing.T, _, file string) {
			must(t, os.WriteFile(file+".new", []byte(first), 0o600))
			must(t, os.Rename(file+".new", file))
		}, false, false},
		{"another key of the ConfigMap", volume, func(t *testing.T, dir, _ string) {
			revision(t, dir, "..2", first)
			must(t, os.RemoveAll(filepath.Join(dir, "..1")))
		}, false, false},
		{"removed", plain, func(t *testing.T, _, file string) { must(t, os.Remove(file)) }, false, true},
		{"too large", plain, func(t *testing.T, _, file string) {
			must(t, os.WriteFile(file+".new", []byte(strings.Repeat(second, 100)), 0o600))
			must(t, os.Rename(file+".new", file))
		}, false, true},
	} {
		for name, poll := range map[string]time.Duration{"noticed": time.Hour, "polled": time.Millisecond} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				dir := t.TempDir()
				file := test.make(t, dir)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				reported, result := make(chan error, 100), make(chan bool, 1)
				c := FileConfig{Path: file, Text: []byte(first), Settle: time.Millisecond, Poll: poll}
				c.Read, c.Report = func() ([]byte, error) { return readSmall(file) }, func(err error) { reported <- err }
				go func() { result <- FileChanged(ctx, c) }()
				test.change(t, dir, file)
				await := func(what string, fits func(error) bool) {
					t.Helper()
					select {
					case err := <-reported:
						if !fits(err) {
							t.Errorf("reported %v, want that the file %s", err, what)
						}
					case <-ctx.Done():
						t.Fatalf("no report that the file %s", what)
					case changed := <-result:
						t.Fatalf("changed: %t, before a report that the file %s", changed, what)
					}
				}
				if !test.changed {
					if !test.unreadable { // it is read at least once more when it is back
						must(t, os.Rename(file, file+".away"))
					}
					await("is gone", func(err error) bool { return err != nil })
					if !test.unreadable {
						must(t, os.Rename(file+".away", file))
						await("is back", func(err error) bool { return err == nil })
					}
					cancel()
				}
				if got := <-result; got != test.changed {
					t.Errorf("changed: %t, want %t", got, test.changed)
				}
			})
		}
	}
}

// readSmall reads a file of at most 100 bytes.
func readSmall(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err == nil && len(text) > 100 {
		err = errors.New("too large")
	}
	return text, err
}
