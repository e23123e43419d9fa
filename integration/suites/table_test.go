package suites

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRows: what every row must say.
func TestRows(t *testing.T) {
	makefile := readFile(t, "Makefile")
	hasLine := func(line, suite string) bool {
		return regexp.MustCompile(`(?m)^\` + line + `.* ` + suite + `\b`).MatchString(makefile)
	}
	seen := map[string]bool{}
	for _, s := range All() {
		switch {
		case !regexp.MustCompile(`^[a-z][a-z0-9.-]*$`).MatchString(s.Name):
			t.Errorf("%q is no name for a make target", s.Name)
		case seen[s.Name]:
			t.Errorf("there are two suites %s", s.Name)
		case slices.Contains(MakeTargets(makefile), s.Name):
			t.Errorf("make %s is a target of the Makefile, so the suite cannot be run by it", s.Name)
		case !strings.HasSuffix(s.Proves, ".") || strings.Contains(s.Proves, ". "):
			t.Errorf("%s: what it proves is not one sentence: %q", s.Name, s.Proves)
		case s.Kernel != "" && s.TestBinary() == "":
			t.Errorf("%s: a virtual machine runs the tests of one package", s.Name)
		case s.Usual <= 0:
			t.Errorf("%s: how long does it take?", s.Name)
		case s.Tier == Extended && (!s.Rare && s.Usual > 8*time.Minute || s.Usual > 12*time.Minute):
			t.Errorf("%s usually takes %s: split it, so that CI finds time for it", s.Name, s.Usual)
		case s.Rare && s.Tier != Extended:
			t.Errorf("%s is rare, but not of the extended tier", s.Name)
		case len(s.About) > 6 || len(s.About) == 0 && s.Tier == Extended && !s.isOfTests():
			t.Errorf("%s has %d folders in About: name one to six of the product that it is there for", s.Name, len(s.About))
		case s.HardLimit(1) < s.Usual*3/2:
			t.Errorf("%s usually takes %s and is killed after %s", s.Name, s.Usual, s.HardLimit(1))
		}
		if _, err := os.Stat(filepath.Join(root, s.Name)); err == nil && !(hasLine(".PHONY:", s.Name) && hasLine(".DEFAULT", s.Name)) {
			t.Errorf("there is a file %s, so make %s would do nothing: name it beside .DEFAULT in the Makefile, and in .PHONY", s.Name, s.Name)
		}
		seen[s.Name] = true
	}
}

// isOfTests reports whether a suite is about the tests' own tools, or reads all sources.
func (s Suite) isOfTests() bool {
	return !slices.ContainsFunc(s.Packages, func(p string) bool { return !strings.HasPrefix(p, "./integration/env/") })
}

// coreTime is how long the core tier may take on two cores, with everything built.
const coreTime = 15 * time.Minute

// promises returns what no change may break unnoticed, by the row of the core tier that proves it.
func promises() map[string]string {
	return map[string]string{
		"vet":              "the code is formatted and vetted",
		"unit":             "endpoints, policies, rules, names, children and command lines are decided and printed correctly",
		"ipvs":             "virtual servers are decided, encoded and read correctly",
		"race":             "no memory is shared without a lock",
		"docs":             "commands, flags and links of every page exist",
		"laptop":           "the commands of README.md work in a new clone",
		"lab":              "the tests' own network sees what it should; make demo",
		"packets":          "closure, policies, NodePorts, affinity, restart and repair in mode iptables, by real packets",
		"apiserver":        "an API server that fails or is slow opens nothing and changes nothing",
		"agreement":        "rules as kube-proxy's, names as CoreDNS'",
		"operation":        "Events, metrics, logs, health; recovery from each fault of the soak",
		"site-alone-smoke": "a node that is rebooted while it is cut off serves from its saved state",
		"dns-smoke":        "DNS of a closed Service stays in its unit, and comes back after each fault",
		"grids":            "Grids: children, grace of a lost unit, failover of the controller, validation",
		"stored-versions":  "custom resources are migrated to the newest version",
		"sites":            "NodeUnits and NodeGroups: the labels of Nodes",
		"ipvs-closure-6.1": "closure, restart and repair in mode ipvs, by real packets",
		"ipvs-rules-6.1":   "virtual servers are written, read back and repaired",
	}
}

// TestPromises: the core tier proves each promise, within coreTime; make test-all takes at most two
// hours on two cores.
func TestPromises(t *testing.T) {
	core, promised := Tiers(All(), Core), promises()
	for name, what := range promised {
		if !slices.ContainsFunc(core, func(s Suite) bool { return s.Name == name }) {
			t.Errorf("the core tier has no row %q, which proves: %s", name, what)
		}
	}
	for _, s := range core {
		if promised[s.Name] == "" {
			t.Errorf("what does the row %q prove that no other row of the core tier does? Add it to promises, or make the row extended", s.Name)
		}
	}
	work := func(table []Suite) (sum time.Duration) {
		for _, s := range table {
			if s.Alone {
				sum += 2 * s.Usual
			} else {
				sum += s.Usual * time.Duration(s.load()) / 100
			}
		}
		return sum / 2
	}
	if took := work(core); took > coreTime {
		t.Errorf("the core tier takes %s, want at most %s", took, coreTime)
	}
	if took := work(Tiers(All(), Core, Extended)); took > 2*time.Hour {
		t.Errorf("all suites take %s", took)
	}
}

// TestSkipsExist: each text of an expected skip is what some test says.
func TestSkipsExist(t *testing.T) {
	var others strings.Builder
	for file, text := range readSources(t) {
		if !strings.HasPrefix(file, filepath.Join(root, "integration", "suites")) {
			others.WriteString(text)
		}
	}
	for _, s := range All() {
		for _, k := range s.Skips {
			if !strings.Contains(others.String(), k.Text) {
				t.Errorf("%s expects a skip with %q, which no test says", s.Name, k.Text)
			}
		}
	}
}

// TestVariables: docs/testing.md lists every variable that tests read.
func TestVariables(t *testing.T) {
	page := readFile(t, "docs/testing.md")
	pattern := regexp.MustCompile(`"((?:GRIDPROXY|CI)_[A-Z_]*[A-Z]|REQUIRE|UPDATE|FUZZTIME|BURDEN)"`)
	for file, text := range readSources(t) {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(page, "`"+match[1]+"`") {
				t.Errorf("docs/testing.md does not list the variable %s of %s", match[1], file)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	table := []Suite{{Name: "a-1"}, {Name: "b"}, {Name: "a-2"}}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"b"}, "b"}, {[]string{"a-2", "a-1"}, "a-1 a-2"}, {[]string{"a-*", "a-1"}, "a-1 a-2"},
		{[]string{"c"}, "error"}, {[]string{"b", "c-*"}, "error"}, {[]string{"["}, "error"}, {nil, "error"},
	} {
		chosen, err := Choose(table, c.names)
		got := names(chosen)
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%q chooses %s (%v), want %s", c.names, got, err, c.want)
		}
	}
}

func names(table []Suite) string {
	var all []string
	for _, s := range table {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}
