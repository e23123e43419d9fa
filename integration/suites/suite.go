package suites

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Tier says when a suite runs.
type Tier string

// The tiers.
const (
	Core     Tier = "core"     // make test, and always in CI
	Extended Tier = "extended" // make test-all, and in CI as far as the time suffices
	Fuzz     Tier = "fuzz"     // make fuzz, and in CI with the time that is left
)

// Need is a prerequisite of a suite. The runner installs or builds it.
type Need string

// The needs.
const (
	IPTables          Need = "iptables"           // both variants of iptables, iproute2, conntrack, ipset
	ControlPlane      Need = "control-plane"      // etcd, Kubernetes and kube-proxy, built from their Go modules
	OlderControlPlane Need = "control-plane-1.36" // the same of the Kubernetes release before
	NodeRuntime       Need = "node-runtime"       // containerd, runc and network plugins, built from their Go modules
	SuperEdge         Need = "superedge"          // SuperEdge's own controller, built from its Go module
	Helm              Need = "helm"               // helm, built from its Go module
	Flux              Need = "flux"               // Flux's kustomize-controller, built from its Go module
	CoreDNS           Need = "coredns"            // CoreDNS, built in the module that compares names with it
	Machine61         Need = "kernel-6.1"         // QEMU, and Debian's kernel 6.1
	Machine612        Need = "kernel-6.12"        // QEMU, and Debian's kernel 6.12
	Buildah           Need = "buildah"            // buildah and debootstrap
	Strace            Need = "strace"             // Debian's strace
	Systemd           Need = "systemd"            // Debian's systemd-analyze
	Codespell         Need = "codespell"          // Debian's codespell
	Prometheus        Need = "prometheus"         // Debian's Prometheus, with promtool
	GCC               Need = "gcc"                // Debian's C compiler, with which the race detector is linked
)

// Suite is a row of the table: one run of go test, or of another command.
type Suite struct {
	Name   string // as in SUITES=name and make name
	Proves string // one sentence
	Tier   Tier

	Module   string   // folder of a nested Go module; "" = the main module
	ModFile  string   // a file of Module that replaces its go.mod, for other versions; "" = none
	Tags     string   // build tags, separated by commas; "" = none
	Race     bool     // whether the race detector watches the tests
	Packages []string // what go test runs, relative to the module: ./rules/...
	Run      string   // pattern of go test's -run; "" = all tests
	Skip     string   // pattern of go test's -skip; "" = none
	Args     []string // further flags of the test binaries, such as -test.parallel=2
	Env      []string // further variables, as NAME=value
	Parallel int      // packages tested at the same time; 0 = 1
	Fuzz     string   // a fuzz target: go test searches for inputs that make it fail
	Command  []string // what runs instead of go test

	Kernel   string // "" = on this machine, else in a virtual machine with this kernel: 6.1, 6.12
	OwnClock bool   // whether time in that machine is what it executes, so limits hold on a busy host

	Needs   []Need        // what is installed or built before it
	Starts  []string      // packages of the programs that its tests build and start
	Reads   []string      // files and folders outside of Go packages whose content it depends on
	About   []string      // one to six folders of the product that it is there for, with all below them
	Rare    bool          // whether a run of CI has only one of these suites, unless a change is near
	Skips   []Skip        // the skips that are expected
	Usual   time.Duration // on two cores, with everything built
	Limit   time.Duration // after which it is killed; 0 = see HardLimit
	Load    int           // processor time it uses, in percent of one processor; 0 = 100
	Alone   bool          // whether nothing may run beside it, because it prints figures
	Verbose bool          // whether the output of tests that pass is printed, for seeds and figures
}

// Skip is a reason for which tests of a suite are skipped even where everything is installed.
type Skip struct {
	Text string // part of what the test says
	Why  string // why that is no gap
}

// minLimit leaves time to compile tests on a slow machine where nothing is compiled yet. An
// emulated machine shares a processor with all else that runs, so it gets longer.
const (
	minLimit        = 25 * time.Minute
	minMachineLimit = 45 * time.Minute
)

// HardLimit returns how long the suite may run at a pace: Limit, or three times Usual and at least
// the minimum above. Both are for a machine of pace 1.
func (s Suite) HardLimit(pace float64) time.Duration {
	switch {
	case s.Limit > 0:
		return AtPace(s.Limit, pace)
	case s.Kernel != "":
		return max(AtPace(3*s.Usual, pace), minMachineLimit)
	}
	return max(AtPace(3*s.Usual, pace), minLimit)
}

// BuildFlags returns the flags of the go command that decide what the tests are built from.
func (s Suite) BuildFlags() []string {
	var flags []string
	if s.ModFile != "" {
		flags = append(flags, "-modfile="+s.ModFile)
	}
	if s.Tags != "" {
		flags = append(flags, "-tags="+s.Tags)
	}
	if s.Race {
		flags = append(flags, "-race")
	}
	return flags
}

// TestBinary returns the file that the suite's only package is linked to, for all suites that test
// it, in a folder of such files; "" if go test runs the suite. Its name is the one that go test
// gives it, because tests know the name of their own process.
func (s Suite) TestBinary() string {
	if len(s.Packages) != 1 || !strings.HasPrefix(s.Packages[0], ".") || strings.HasSuffix(s.Packages[0], "...") || s.Fuzz != "" {
		return ""
	}
	folder := path.Join(s.Module, s.Packages[0])
	return path.Join(folder, s.Tags, path.Base(folder)+".test")
}

// load returns the processor time that the suite uses, in percent of one processor.
func (s Suite) load() int {
	if s.Load > 0 {
		return s.Load
	}
	return 100
}

// AllNeeds returns the suite's needs, and those that follow from where it runs.
func (s Suite) AllNeeds() []Need {
	needs := slices.Clone(s.Needs)
	switch s.Kernel {
	case "6.1":
		needs = append(needs, Machine61)
	case "6.12":
		needs = append(needs, Machine612)
	}
	return needs
}

// Expects reports whether a skip with this text is expected.
func (s Suite) Expects(text string) bool {
	return slices.ContainsFunc(s.Skips, func(k Skip) bool { return strings.Contains(text, k.Text) })
}

// Where returns where the suite runs, for people.
func (s Suite) Where() string {
	if s.Kernel == "" {
		return "this machine"
	}
	return "kernel " + s.Kernel
}

// Choose returns the suites with these names, in the order of the table. A name may be a pattern
// such as ipvs-*, as of path.Match.
func Choose(table []Suite, names []string) ([]Suite, error) {
	chosen := map[string]bool{}
	for _, name := range names {
		found := false
		for _, s := range table {
			matched, err := path.Match(name, s.Name)
			if err != nil {
				return nil, fmt.Errorf("the pattern %q cannot be read: %w", name, err)
			}
			if matched {
				chosen[s.Name], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no suite or make target %q: `make test-list` prints the suites, `make help` the targets", name)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("no suite is named: `make test-list` prints them")
	}
	return slices.DeleteFunc(slices.Clone(table), func(s Suite) bool { return !chosen[s.Name] }), nil
}

// Tiers returns the suites of these tiers, in the order of the table.
func Tiers(table []Suite, tiers ...Tier) []Suite {
	var chosen []Suite
	for _, s := range table {
		if slices.Contains(tiers, s.Tier) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// MakeTargets returns the targets of a Makefile that have a rule of their own.
func MakeTargets(makefile string) []string {
	var targets []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, match[1])
	}
	return targets
}
