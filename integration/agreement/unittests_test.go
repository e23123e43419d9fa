package agreement

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// exceptions is testdata/unittests/exceptions.yaml.
type exceptions struct {
	// Deviations are cases in which gridproxy differs from kube-proxy on purpose. Each must fail.
	Deviations []exception `json:"deviations"`
	// LeftOut are tests that say nothing about gridproxy, because they meet none of its code.
	LeftOut []exception `json:"leftOut"`
}

type exception struct {
	File   string `json:"file"`
	Test   string `json:"test"` // one case; a test with all of its cases in LeftOut
	Reason string `json:"reason"`

	// Prints is part of what a deviating case prints, so that it cannot fail for another reason.
	Prints string `json:"prints"`
}

func readExceptions(t *testing.T) exceptions {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "unittests", "exceptions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var e exceptions
	if err := yaml.UnmarshalStrict(text, &e); err != nil {
		t.Fatal(err)
	}
	for _, x := range slices.Concat(e.Deviations, e.LeftOut) {
		if x.File == "" || x.Test == "" || x.Reason == "" {
			t.Fatalf("an exception needs file, test and reason: %+v", x)
		}
	}
	for _, x := range e.Deviations {
		if x.Prints == "" {
			t.Fatalf("a deviation needs what its test prints: %+v", x)
		}
	}
	return e
}

// minimumRun is which part of the cases must run on gridproxy's code.
const minimumRun = 0.9

// TestKubeProxyUnitTests: kube-proxy's own unit tests of rules, endpoints, UDP flows and health
// checks pass on gridproxy's code, except for the deviations listed in exceptions.yaml. The tests
// are read from kube-proxy's module; an overlay puts adapters in the place of what they test.
func TestKubeProxyUnitTests(t *testing.T) {
	requireNamespace(t)
	expected := readExceptions(t)
	packages := adaptedPackages()
	versions := linkKubernetes(t, packages)
	var all []unitCase
	for _, a := range packages {
		all = append(all, versions.run(t, a)...)
	}
	counts := map[string]*unitCount{}
	total := &unitCount{}
	for _, c := range all {
		if counts[c.file] == nil {
			counts[c.file] = &unitCount{}
		}
		kind := expected.kindOf(c)
		counts[c.file].add(kind, c.passed)
		total.add(kind, c.passed)
		switch {
		case kind == caseDeviates && c.passed:
			t.Errorf("%s: %s passes now: remove it from the deviations in exceptions.yaml", c.file, c.name)
		case kind == caseDeviates && !expected.failsAsListed(c):
			t.Errorf("%s: %s fails, but not as exceptions.yaml says:\n%s", c.file, c.name, c.output)
		case kind == caseRuns && !c.passed:
			t.Errorf("%s: %s fails on gridproxy's code:\n%s", c.file, c.name, c.output)
		}
	}
	for _, x := range expected.unmatched(all) {
		t.Errorf("exceptions.yaml names %s of %s, which does not exist in this release", x.Test, x.File)
	}
	for _, file := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-42s %s", file, counts[file])
	}
	t.Logf("%-42s %s", "all", total)
	for _, x := range expected.Deviations {
		t.Logf("deviates: %s: %s", x.Test, x.Reason)
	}
	if run := total.all - total.leftOut; float64(run) < minimumRun*float64(total.all) {
		t.Errorf("only %d of %d cases run on gridproxy's code", run, total.all)
	}
}

// unitCase is a test or subtest without subtests of its own, or one that fails although none of
// its subtests does.
type unitCase struct {
	file, name string
	passed     bool
	output     string
}

type caseKind int

const (
	caseRuns caseKind = iota
	caseDeviates
	caseLeftOut
)

func (e exceptions) kindOf(c unitCase) caseKind {
	if slices.ContainsFunc(e.LeftOut, func(x exception) bool { return x.covers(c) }) {
		return caseLeftOut
	}
	if slices.ContainsFunc(e.Deviations, func(x exception) bool { return x.File == c.file && x.Test == c.name }) {
		return caseDeviates
	}
	return caseRuns
}

// failsAsListed reports whether a deviating case printed what the deviation says.
func (e exceptions) failsAsListed(c unitCase) bool {
	return slices.ContainsFunc(e.Deviations, func(x exception) bool {
		return x.File == c.file && x.Test == c.name && strings.Contains(c.output, x.Prints)
	})
}

// covers reports whether an exception is about a case, or about the test that it belongs to.
func (x exception) covers(c unitCase) bool {
	return x.File == c.file && (x.Test == c.name || strings.HasPrefix(c.name, x.Test+"/"))
}

// unmatched are the exceptions that are about no case.
func (e exceptions) unmatched(all []unitCase) []exception {
	return slices.DeleteFunc(slices.Concat(e.Deviations, e.LeftOut), func(x exception) bool { return slices.ContainsFunc(all, x.covers) })
}

type unitCount struct{ all, passed, deviating, leftOut int }

func (n *unitCount) add(kind caseKind, passed bool) {
	n.all++
	switch {
	case kind == caseLeftOut:
		n.leftOut++
	case kind == caseDeviates:
		n.deviating++
	case passed:
		n.passed++
	}
}

func (n *unitCount) String() string {
	return fmt.Sprintf("%4d cases: %4d run, %4d passed, %3d deviating; %3d left out", n.all, n.all-n.leftOut, n.passed, n.deviating, n.leftOut)
}

// linked is kube-proxy's module at a path outside of Go's module cache: inside, the go command
// allows no overlay.
type linked struct {
	kubernetes string // a link to the folder of k8s.io/kubernetes
	modFile    string // a go.mod that takes the module from there
	overlay    string // with the adapters
	network    string // a program that runs another one in a network namespace of its own
}

func linkKubernetes(t *testing.T, packages []adapted) linked {
	t.Helper()
	const module = "k8s.io/kubernetes"
	dir := t.TempDir()
	l := linked{kubernetes: filepath.Join(dir, "kubernetes"), modFile: filepath.Join(dir, "go.mod"), network: filepath.Join(dir, "own-network")}
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil || len(folder) == 0 {
		t.Fatalf("finding the module %s: %v: run go mod download in integration/agreement", module, err)
	}
	if err := os.Symlink(strings.TrimSpace(string(folder)), l.kubernetes); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"go.mod": l.modFile, "go.sum": strings.TrimSuffix(l.modFile, ".mod") + ".sum"} {
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, content, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-replace", module+"="+l.kubernetes, l.modFile).CombinedOutput(); err != nil {
		t.Fatalf("making a go.mod file: %v\n%s", err, out)
	}
	if err := os.WriteFile(l.network, []byte(ownNetwork), 0o755); err != nil {
		t.Fatal(err)
	}
	if l.overlay, err = writeOverlay(packages, l.kubernetes, dir); err != nil {
		t.Fatal(err)
	}
	return l
}

// ownNetwork runs a program in a network namespace of its own, where only loopback is up.
const ownNetwork = `#!/bin/sh
exec unshare --net sh -c 'ip link set lo up && exec "$@"' sh "$@"
`

func (l linked) run(t *testing.T, a adapted) []unitCase {
	t.Helper()
	tests, err := a.testsIn(l.kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	fileOf := map[string]string{}
	for file, names := range tests {
		for _, name := range names {
			fileOf[name] = file
		}
	}
	pattern := "^(" + strings.Join(slices.Sorted(maps.Keys(fileOf)), "|") + ")$"
	var diag bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "-count=1", "-vet=off", "-modfile", l.modFile, "-overlay", l.overlay, "-exec", l.network,
		"-run", pattern, "k8s.io/kubernetes/"+a.folder)
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	results, other := readUnitEvents(t, out)
	if len(results) == 0 {
		t.Fatalf("no unit test of %s ran: %v\n%s%s", a.folder, err, &diag, other)
	}
	missing := maps.Clone(fileOf)
	for i := range results {
		top, _, _ := strings.Cut(results[i].name, "/")
		results[i].file = fileOf[top]
		delete(missing, top)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%s: %s did not run, because a test before it ended the process:\n%s", fileOf[name], name, other)
	}
	return results
}

// readUnitEvents reads what go test -json prints: the cases, and what belongs to no test.
func readUnitEvents(t *testing.T, events []byte) ([]unitCase, string) {
	t.Helper()
	ended, output := map[string]string{}, map[string]*strings.Builder{"": {}}
	var order []string
	lines := bufio.NewScanner(bytes.NewReader(events))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("reading %q: %v", lines.Text(), err)
		}
		if output[e.Test] == nil {
			output[e.Test] = &strings.Builder{}
			order = append(order, e.Test)
		}
		switch e.Action {
		case "output", "build-output":
			output[e.Test].WriteString(e.Output)
		case "pass", "fail", "skip":
			ended[e.Test] = e.Action
		}
	}
	var all []unitCase
	for _, name := range order {
		below := func(other string) bool { return strings.HasPrefix(other, name+"/") }
		parent := slices.ContainsFunc(order, below)
		explained := slices.ContainsFunc(order, func(other string) bool { return below(other) && ended[other] != "pass" })
		if parent && (ended[name] == "pass" || explained) {
			continue
		}
		// A test that a panic ended has no result.
		all = append(all, unitCase{name: name, passed: ended[name] == "pass", output: output[name].String()})
	}
	return all, output[""].String()
}
