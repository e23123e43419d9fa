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

// Summary counts and names the results of a run of go test. Subtests count as tests.
type Summary struct {
	Passed, Failed, Skipped int
	Failures                []string      // package and test, or only the package; with what a test printed
	Skips                   []SkippedTest // all of them
	Slowest                 []TimedTest   // tests that are no subtests, the slowest first
	Unended                 []string      // packages whose run began and has no end: it was killed
	Run                     time.Duration // during which tests of at least one package ran
	FailedTests             []FailedTest  // of the top level
	Proof                   string        // the failure that shows a fault, so that no test runs once more
}

// SkippedTest is a test that was skipped, with what it printed.
type SkippedTest struct{ Test, Text string }

// TimedTest is a test with how long it took.
type TimedTest struct {
	Test string
	Time time.Duration
}

// Bounds of what a Summary keeps.
const (
	maxText    = 500 // bytes of the beginning of a test's output, and of its end
	maxSlowest = 10
)

// testOutput is the beginning and the end of what a test printed. The message of a failure is the
// last one, or the first if logs of daemons follow.
type testOutput struct {
	head, tail string
	running    bool
	proof      string   // the first line that shows a fault without a second try
	seeds      []string // NAME=value
}

func (o testOutput) add(text string) testOutput {
	o.proof = cmp.Or(o.proof, proofIn(text))
	if strings.Contains(text, "GRIDPROXY_") {
		o.seeds = withSeeds(o.seeds, seedPattern.FindAllString(text, maxSeeds))
	}
	if room := maxText - len(o.head); o.tail == "" && room > 0 {
		o.head += text[:min(len(text), room)]
		text = text[min(len(text), room):]
	}
	o.tail += text
	o.tail = o.tail[max(0, len(o.tail)-maxText):]
	return o
}

// last returns the last bytes, at most maxText.
func (o testOutput) last() string {
	all := o.head + o.tail
	return all[max(0, len(all)-maxText):]
}

// all returns the beginning and the end.
func (o testOutput) all() string {
	if o.tail == "" {
		return o.head
	}
	return o.head + "\n[…]\n" + o.tail
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
	outputs := map[string]testOutput{} // of the tests that have not ended
	var last time.Time                 // of the last event
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			e.Time = cmp.Or(e.Time, last) // an event of go build has none
			if len(sum.Unended) > 0 {
				sum.Run += e.Time.Sub(last)
			}
			last = e.Time
			sum.add(e, outputs)
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
func (sum *Summary) addOfPackage(e event, outputs map[string]testOutput) {
	switch e.Action {
	case "start":
		sum.Unended = append(sum.Unended, e.Package)
	case "fail":
		sum.addFailedPackage(e.Package, outputs)
		fallthrough
	case "pass", "skip":
		sum.Unended = slices.DeleteFunc(sum.Unended, func(p string) bool { return p == e.Package })
	}
}

func (sum *Summary) add(e event, outputs map[string]testOutput) {
	name := e.Package + " " + e.Test
	switch {
	case e.Action == "output":
		outputs[name] = outputs[name].add(e.Output)
		return
	case e.Action == "run":
		o := outputs[name]
		o.running = true
		outputs[name] = o
		return
	case e.Test == "":
		sum.addOfPackage(e, outputs)
		return
	case e.Action == "pass":
		sum.Passed++
	case e.Action == "fail":
		sum.Failed++
		sum.Failures = append(sum.Failures, strings.TrimSuffix(name+": "+reason(outputs[name].all()), ": "))
		sum.addFailure(e, outputs[name])
	case e.Action == "skip":
		sum.Skipped++
		sum.Skips = append(sum.Skips, SkippedTest{Test: name, Text: reason(outputs[name].last())})
	default:
		return
	}
	delete(outputs, name)
	if !strings.Contains(e.Test, "/") {
		sum.Slowest = append(sum.Slowest, TimedTest{Test: name, Time: elapsed(e)})
	}
}

// elapsed returns how long the test took whose end an event reports.
func elapsed(e event) time.Duration { return time.Duration(e.Elapsed * float64(time.Second)) }

// reason returns what a test printed, in one line and without what go test adds.
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
