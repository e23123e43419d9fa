package node

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

type usage struct {
	heap       float64 // bytes in use, garbage included
	goroutines float64
	files      float64 // open file descriptors
}

// String is the usage for people.
func (u usage) String() string {
	return fmt.Sprintf("%.1f MiB of heap, %.0f goroutines, %.0f open files", u.heap/(1<<20), u.goroutines, u.files)
}

func (s *soak) usage(t *testing.T) usage {
	t.Helper()
	page, err := s.node.Get(s.ctx, metrics, "/metrics")
	must(t, err)
	values := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(page.Text)); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		var value float64
		if _, err := fmt.Sscan(text, &value); err == nil {
			values[name] = value
		}
	}
	for _, name := range []string{"go_memstats_heap_inuse_bytes", "go_goroutines", "process_open_fds"} {
		if _, found := values[name]; !found {
			t.Fatalf("/metrics has no %s", name)
		}
	}
	return usage{values["go_memstats_heap_inuse_bytes"], values["go_goroutines"], values["process_open_fds"]}
}

// flat compares the least of the last third of some rounds with the most of the first third.
// What is lost in every round is above it sooner or later. The slack is what one round may hold
// or not.
func flat(seen []usage) error {
	third := max(1, len(seen)/3)
	early, late := seen[:third], seen[len(seen)-third:]
	var errs []error
	for _, what := range []struct {
		name  string
		of    func(usage) float64
		slack float64
	}{
		{"bytes of heap", func(u usage) float64 { return u.heap }, 16 << 20},
		{"goroutines", func(u usage) float64 { return u.goroutines }, 20},
		{"open files", func(u usage) float64 { return u.files }, 10},
	} {
		most, least := what.of(early[0]), what.of(late[0])
		for _, u := range early {
			most = max(most, what.of(u))
		}
		for _, u := range late {
			least = min(least, what.of(u))
		}
		if least > most+what.slack {
			errs = append(errs, fmt.Errorf("at least %.0f %s after at most %.0f before", least, what.name, most))
		}
	}
	return errors.Join(errs...)
}

// TestFlat: what grows is found, and what goes up and down is not.
func TestFlat(t *testing.T) {
	var upAndDown []usage
	for i := range 20 {
		n := float64(i % 5)
		upAndDown = append(upAndDown, usage{20<<20 + n*4*(1<<20), 40 + n, 20 + n})
	}
	if err := flat(upAndDown); err != nil {
		t.Errorf("found in what goes up and down: %v", err)
	}
	for _, grows := range []usage{{heap: 4 << 20}, {goroutines: 5}, {files: 3}} {
		var seen []usage
		for i := range 20 {
			n := float64(i)
			seen = append(seen, usage{(20 << 20) + n*grows.heap, 40 + n*grows.goroutines, 20 + n*grows.files})
		}
		if flat(seen) == nil {
			t.Errorf("%+v more a round is not found", grows)
		}
	}
}
