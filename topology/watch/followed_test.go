package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
)

// followed is a running source of manifests and what it reported.
type followed struct {
	*Manifests
	t *testing.T

	mu      sync.Mutex
	reports []string // each the warnings or the error of one report
}

// follow starts a source that hears of changes from the kernel alone, and ends with the test.
func follow(t *testing.T, paths ...string) *followed {
	t.Helper()
	f := &followed{t: t}
	f.Manifests = NewManifests(ManifestConfig{Paths: paths, Node: "n1", Report: f.report, Settle: 10 * time.Millisecond, Poll: time.Hour})
	start(t, f.Run)
	return f
}

// start starts what runs until the test ends or stop is called, without an error.
func start(t testing.TB, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *followed) report(warnings []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	f.reports = append(f.reports, strings.Join(warnings, "\n"))
}

func (f *followed) reported() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reports)
}

// nodes are the names of the nodes, in order, "-" where there is no Snapshot.
func (f *followed) nodes() string {
	s, known := f.Snapshot()
	if !known {
		return "-"
	}
	names := make([]string, 0, len(s.Nodes))
	for name, labels := range s.Nodes {
		names = append(names, name+labels["unit"])
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (f *followed) wantNodes(want string) {
	f.t.Helper()
	wait.Until(f.t, "nodes "+want, func() error {
		got := f.nodes()
		return wait.Check(got == want, "nodes %s", got)
	})
}

// wantReport waits until the last report contains a text, or says that nothing is wrong.
func (f *followed) wantReport(part string) {
	f.t.Helper()
	wait.Until(f.t, "a report of "+part, func() error {
		all := f.reported()
		if len(all) == 0 {
			return errors.New("none")
		}
		last := all[len(all)-1]
		return wait.Check(strings.Contains(last, part) && (part != "" || last == ""), "%s", strings.Join(all, "\n"))
	})
}

func node(name string) string {
	return "---\n{apiVersion: v1, kind: Node, metadata: {name: " + name + "}}\n"
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)))
}

// replace writes a file as editors and kubectl do: beside it, then in its place.
func replace(t *testing.T, name, text string) {
	t.Helper()
	write(t, name+".tmp", text)
	must(t, os.Rename(name+".tmp", name))
}
