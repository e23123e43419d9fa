package suites

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Summary is what a run of go test came to. Subtests count as tests.
type Summary struct {
	Passed, Failed, Skipped int
	Failures                []string      // package and test, or only the package; with what a test said
	Skips                   []SkippedTest // all of them
	Slowest                 []TimedTest   // tests that are no subtests, the slowest first
	Unended                 []string      // packages whose run began and has no end: it was killed
	Run                     time.Duration // during which tests of at least one package ran
	FailedTests             []FailedTest  // of the top level
	Proof                   string        // why none of them runs once more: it shows a fault; "" = no proof
}

// SkippedTest is a test that was skipped, with what it said.
type SkippedTest struct{ Test, Text string }

// TimedTest is a test with how long it took.
type TimedTest struct {
	Test string
	Time time.Duration
}

// Bounds of what a Summary keeps.
const (
	maxText    = 500 // bytes of what a test says, of its beginning and of its end
	maxSlowest = 10
)

// words are what a test said: its beginning and its end. A message of failure is the last one, or
// the first where logs of daemons follow.
type words struct {
	head, tail string
	running    bool
	proof      string   // the first line that shows a fault without a second try
	seeds      []string // NAME=value
}

func (w words) add(text string) words {
	w.proof = cmp.Or(w.proof, proofIn(text))
	if strings.Contains(text, "GRIDPROXY_") {
		w.seeds = withSeeds(w.seeds, seedPattern.FindAllString(text, maxSeeds))
	}
	if room := maxText - len(w.head); w.tail == "" && room > 0 {
		w.head += text[:min(len(text), room)]
		text = text[min(len(text), room):]
	}
	w.tail += text
	w.tail = w.tail[max(0, len(w.tail)-maxText):]
	return w
}

// last are the last bytes, maxText at most.
func (w words) last() string {
	all := w.head + w.tail
	return all[max(0, len(all)-maxText):]
}

// all is the beginning and the end.
func (w words) all() string {
	if w.tail == "" {
		return w.head
	}
	return w.head + "\n[…]\n" + w.tail
}

// event is a line of go test -json.
type event struct {
	Time                          time.Time
	Action, Package, Test, Output string
	Elapsed                       float64
}

// Summarize reads the output of go test -json. It skips a line that is not an event, because a run
// that was killed may end in the middle of one.
func Summarize(events io.Reader) (Summary, error) {
	var sum Summary
	said := map[string]words{} // of the tests that have not ended
	var last time.Time         // of the last event
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			if len(sum.Unended) > 0 {
				sum.Run += e.Time.Sub(last)
			}
			last = e.Time
			sum.add(e, said)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Summary{}, fmt.Errorf("reading the events of go test: %w", err)
		}
	}
	slices.SortStableFunc(sum.Slowest, func(a, b TimedTest) int { return int(b.Time - a.Time) })
	sum.Slowest = sum.Slowest[:min(len(sum.Slowest), maxSlowest)]
	return sum, nil
}

// addOfPackage adds the beginning or the end of a package's run.
func (sum *Summary) addOfPackage(e event, said map[string]words) {
	switch e.Action {
	case "start":
		sum.Unended = append(sum.Unended, e.Package)
	case "fail":
		sum.addFailedPackage(e.Package, said)
		fallthrough
	case "pass", "skip":
		sum.Unended = slices.DeleteFunc(sum.Unended, func(p string) bool { return p == e.Package })
	}
}

func (sum *Summary) add(e event, said map[string]words) {
	name := e.Package + " " + e.Test
	switch {
	case e.Action == "output":
		said[name] = said[name].add(e.Output)
		return
	case e.Action == "run":
		w := said[name]
		w.running = true
		said[name] = w
		return
	case e.Test == "":
		sum.addOfPackage(e, said)
		return
	case e.Action == "pass":
		sum.Passed++
	case e.Action == "fail":
		sum.Failed++
		sum.Failures = append(sum.Failures, strings.TrimSuffix(name+": "+reason(said[name].all()), ": "))
		sum.addFailure(e, said[name])
	case e.Action == "skip":
		sum.Skipped++
		sum.Skips = append(sum.Skips, SkippedTest{Test: name, Text: reason(said[name].last())})
	default:
		return
	}
	delete(said, name)
	if !strings.Contains(e.Test, "/") {
		sum.Slowest = append(sum.Slowest, TimedTest{Test: name, Time: elapsed(e)})
	}
}

// elapsed returns how long the test took whose end an event reports.
func elapsed(e event) time.Duration { return time.Duration(e.Elapsed * float64(time.Second)) }

// reason is what a test said, in one line and without what go test adds.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
