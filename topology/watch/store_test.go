package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/state"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

var moment = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// savedNamed is a Snapshot of node bj-1 with one Service, by whose name it is recognised.
func savedNamed(service string) topology.Snapshot {
	return topology.Snapshot{
		Node: "bj-1", Nodes: map[string]labels.Set{"bj-1": {"location": "beijing"}},
		Services: []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: service}}},
	}
}

// storeWith has saved these Snapshots, one after the other.
func storeWith(t *testing.T, services ...string) *Store {
	t.Helper()
	s := NewStore(filepath.Join(t.TempDir(), "a", "folder"), "bj-1")
	s.now = func() time.Time { return moment }
	for _, name := range services {
		_, err := s.Save(savedNamed(name), moment)
		must(t, err)
	}
	return s
}

// wantLoaded loads, and wants that Service and a problem with each of these texts, in order.
func wantLoaded(t *testing.T, s *Store, service string, problems ...string) {
	t.Helper()
	read, got, ok := s.Load()
	name := ""
	if ok && len(read.Snapshot.Services) == 1 {
		name = read.Snapshot.Services[0].Name
	}
	if name != service || len(got) != len(problems) {
		t.Fatalf("loaded %q with problems %q, want %q with problems that have %q", name, got, service, problems)
	}
	for i, p := range problems {
		if !strings.Contains(got[i], p) {
			t.Errorf("problem %q has no %q", got[i], p)
		}
	}
}

// filesOf are the names in the folder of a Store.
func filesOf(t *testing.T, s *Store) string {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestGenerations(t *testing.T) {
	s := storeWith(t)
	wantLoaded(t, s, "")
	for _, name := range []string{"one", "two", "three"} {
		size, err := s.Save(savedNamed(name), moment)
		must(t, err)
		info, err := os.Stat(filepath.Join(s.dir, "state"))
		if err != nil || info.Size() != size || info.Mode() != 0o600 {
			t.Errorf("%v: size %d and mode %s, want %d and 0600", err, info.Size(), info.Mode(), size)
		}
		wantLoaded(t, s, name)
	}
	if got := filesOf(t, s); got != "state state.previous" {
		t.Errorf("files %s", got)
	}
	must(t, os.Remove(filepath.Join(s.dir, "state"))) // as if a write had ended between its two renames
	wantLoaded(t, s, "two")
	must(t, os.WriteFile(filepath.Join(s.dir, ".state123"), nil, 0o600))
	wantLoaded(t, s, "two")
	if got := filesOf(t, s); got != "state.previous" {
		t.Errorf("files %s", got)
	}
}

// TestBadState: whatever is wrong with the newer generation, the older one is used, one message
// says why, and one bad file is kept.
func TestBadState(t *testing.T) {
	write := func(s *Store, name string, content []byte) error {
		return os.WriteFile(filepath.Join(s.dir, name), content, 0o600)
	}
	for name, test := range map[string]struct {
		spoil func(s *Store, good []byte) error
		want  string
	}{
		"truncated": {func(s *Store, good []byte) error { return write(s, "state", good[:len(good)-1]) }, "the file is damaged: its checksum is wrong; it is now "},
		"altered": {func(s *Store, good []byte) error {
			good[len(good)/2]++
			return write(s, "state", good)
		}, "the file is damaged: its checksum is wrong; it is now "},
		"empty": {func(s *Store, _ []byte) error { return write(s, "state", nil) }, "it is truncated, or no state of gridproxy; it is now "},
		"folder": {func(s *Store, _ []byte) error {
			return errors.Join(os.Remove(filepath.Join(s.dir, "state")), os.Mkdir(filepath.Join(s.dir, "state"), 0o700))
		}, "is a directory, not a regular file; it is now "},
		"other node": {func(s *Store, _ []byte) error {
			other := NewStore(s.dir, "gz-2")
			moved := savedNamed("moved")
			moved.Node = "gz-2"
			_, err := other.Save(moved, moment)
			return err
		}, `it is the state of another node, "gz-2"; it is now `},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeWith(t, "one", "two")
			must(t, write(s, "state.bad-20250102T030405Z", nil))
			good, err := os.ReadFile(filepath.Join(s.dir, "state"))
			must(t, err)
			must(t, test.spoil(s, good))
			older := "one"
			if name == "other node" {
				older = "two"
			}
			wantLoaded(t, s, older, test.want+s.dir+"/state.bad-20260102T030405Z")
			if got := filesOf(t, s); got != "state.bad-20260102T030405Z state.previous" {
				t.Errorf("files %s", got)
			}
			wantLoaded(t, s, older) // the message comes once
			_, err = s.Save(savedNamed("next"), moment)
			must(t, err)
			wantLoaded(t, s, "next")
		})
	}
}

func TestNothingIsLeft(t *testing.T) {
	s := storeWith(t, "one", "two")
	for _, name := range []string{"state", "state.previous"} {
		must(t, os.WriteFile(filepath.Join(s.dir, name), []byte("?"), 0o600))
	}
	wantLoaded(t, s, "", "/state is not used", "/state.previous is not used")
	if got := filesOf(t, s); got != "state.bad-20260102T030405Z" {
		t.Errorf("files %s", got)
	}
}

// TestSaveFails: what was there stays, and nothing else is left.
func TestSaveFails(t *testing.T) {
	s := storeWith(t, "one")
	broken := savedNamed("\xff") // is not UTF-8, which protobuf leaves alone
	for range 20 {
		broken.Services = append(broken.Services, broken.Services...)
	}
	broken.Services[0].Annotations = map[string]string{"a": strings.Repeat("a", 600)}
	if _, err := s.Save(broken, moment); !errors.Is(err, state.ErrTooLarge) {
		t.Fatalf("%v", err)
	}
	wantLoaded(t, s, "one")
	if got := filesOf(t, s); got != "state" {
		t.Errorf("files %s", got)
	}
	s.dir = filepath.Join(s.dir, "state", "below")
	if _, err := s.Save(savedNamed("two"), moment); err == nil || !strings.Contains(err.Error(), "making the folder for the state: ") {
		t.Errorf("%v", err)
	}
}
