package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gridproxy/topology/regularfile"

	"golang.org/x/sys/unix"
)

// RecordDir is where the values are kept that settings had before they were changed. It survives a
// restart of the daemon, and like the settings themselves it does not survive a boot.
const RecordDir = "/run/gridproxy"

// Change is a setting that was changed.
type Change struct {
	Name string `json:"name"` // such as "proc/sys/net/ipv4/ip_forward"
	Old  int64  `json:"old"`  // before any change of ours
	New  int64  `json:"new"`  // as last set

	// Was is what New was before the last change. A crash between the record and the change leaves
	// it.
	Was int64 `json:"was"`
}

// String returns the setting's name, such as "sysctl net.ipv4.ip_forward".
func (c Change) String() string { return settingName(c.Name) }

// Restored is what Restore did about one setting.
type Restored struct {
	Change
	Have int64 // before Restore
	Done bool  // false = it is neither Old nor New, so another program has set it since, and it was left alone
}

// recordFile returns the path of the record of the network namespace that this thread is in:
// most settings belong to one namespace.
func (m Machine) recordFile() (string, error) {
	namespace, err := namespaceCookie()
	if err != nil {
		return "", fmt.Errorf("asking the kernel which network namespace this is: %w", err)
	}
	return m.path(strings.TrimPrefix(filepath.Join(RecordDir, fmt.Sprintf("settings-%d.json", namespace)), "/")), nil
}

// namespaceCookie returns the number that the kernel gives the network namespace of this
// thread, and no other one until it boots again. Kernels before 5.14 lack that number, so it
// returns the inode number, which the kernel uses again.
func namespaceCookie() (uint64, error) {
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(socket)
	if cookie, err := unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
		return cookie, nil
	}
	var namespace unix.Stat_t
	err = unix.Stat("/proc/thread-self/ns/net", &namespace)
	return namespace.Ino, err
}

// Recorded returns the changes of settings in this network namespace since the machine has
// booted, in the order of the first one of each.
func (m Machine) Recorded() ([]Change, error) {
	file, err := m.recordFile()
	if err != nil {
		return nil, err
	}
	text, err := regularfile.Read(file, recordMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Change
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the old values of settings from %s: %w; set them on the host and remove the file", file, err)
	}
	if len(all) > recordedMax {
		return nil, fmt.Errorf("%s has %d settings, more than %d; set them on the host and remove the file", file, len(all), recordedMax)
	}
	for _, c := range all {
		if !isOurs(c.Name) {
			return nil, fmt.Errorf("%s has %q, which is not a setting of gridproxy; set the others on the host and remove the file", file, c.Name)
		}
	}
	return all, nil
}

// isOurs reports whether gridproxy changes a setting. A record that another program has written
// must not make us write elsewhere.
func isOurs(name string) bool {
	return filepath.Clean(name) == name &&
		(name == hashsizeFile || strings.HasPrefix(name, conntrackDir) || strings.HasPrefix(name, ipvsDir) ||
			name == ipForwardFile || name == routeLocalnetFile || strings.HasPrefix(name, arpDir))
}

// record keeps the old value of a setting that is about to be changed. The first old value is
// kept, unless another program has changed the setting since.
func (m Machine) record(name string, old, value int64) error {
	all, err := m.Recorded()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(c Change) bool { return c.Name == name })
	switch {
	case i < 0:
		all = append(all, Change{Name: name, Old: old, New: value, Was: old})
	case all[i].New == old || all[i].Was == old:
		all[i].Was, all[i].New = old, value
	default:
		all[i] = Change{Name: name, Old: old, New: value, Was: old}
	}
	return m.keep(all)
}

// keep writes the record, or removes it if it is empty. After a crash, either the old or the new
// record exists.
func (m Machine) keep(all []Change) error {
	file, err := m.recordFile()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	m.prune(filepath.Dir(file), file)
	temporary, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = temporary.Write(text)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// prune removes the oldest records if there are recordsMax, except kept. They are of network
// namespaces that are gone, or incomplete because of a crash.
func (m Machine) prune(dir, kept string) {
	names, _ := filepath.Glob(filepath.Join(dir, "settings-*.json*"))
	names = slices.DeleteFunc(names, func(name string) bool { return name == kept })
	if len(names) < recordsMax {
		return
	}
	changed := func(name string) time.Time {
		info, err := os.Lstat(name)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return changed(a).Compare(changed(b)) })
	for _, name := range names[:len(names)-recordsMax+1] {
		_ = os.Remove(name) // the bound is no promise
	}
}

// Restore sets the changed settings back to their old values, last change first. A setting that
// another program has changed since is left alone. What could not be restored stays recorded, so
// that it can be retried.
func (m Machine) Restore() ([]Restored, error) { return m.restore(m.write, m.keep) }

// Restorable returns what Restore would do. It changes nothing.
func (m Machine) Restorable() ([]Restored, error) {
	return m.restore(func(string, int64) error { return nil }, func([]Change) error { return nil })
}

func (m Machine) restore(write func(string, int64) error, keep func([]Change) error) ([]Restored, error) {
	all, err := m.Recorded()
	if err != nil {
		return nil, err
	}
	var done []Restored
	var errs []error
	var left []Change
	for _, c := range slices.Backward(all) {
		have, err := m.readInt(c.Name)
		ours := have == c.New || have == c.Was
		if err == nil && ours {
			err = write(c.Name, c.Old)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // its module is gone, and the value with it
		case err != nil:
			errs = append(errs, fmt.Errorf("%s cannot be set back to %d: %w; set it on the host", c, c.Old, err))
			left = append(left, c)
		default:
			done = append(done, Restored{Change: c, Have: have, Done: ours || have == c.Old})
		}
	}
	slices.Reverse(left)
	return done, errors.Join(append(errs, keep(left))...)
}
