package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/env/apiserver"

	"golang.org/x/sys/unix"
)

// figure is one line of the comparison: a number for each program, less is better.
type figure struct {
	name   string
	of     func(result) float64 // in the unit of print
	spread func(result) []time.Duration
	print  func(float64) string
	target map[apiserver.Variant]float64 // largest ratio to kube-proxy's; absent = none

	isStart bool // what a program that did not serve at all did not reach
}

func figures() []figure {
	both := func(nft, legacy float64) map[apiserver.Variant]float64 {
		return map[apiserver.Variant]float64{apiserver.NFT: nft, apiserver.Legacy: legacy}
	}
	size := func(name string, get func(memory) int, target map[apiserver.Variant]float64) figure {
		return figure{
			name: name, target: target,
			of:    func(r result) float64 { return float64(get(r.memory)) },
			print: func(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) },
		}
	}
	single := func(name string, get func(result) time.Duration, target map[apiserver.Variant]float64) figure {
		return figure{
			name: name, target: target,
			of:    func(r result) float64 { return float64(get(r)) },
			print: func(v float64) string { return short(time.Duration(v)) },
		}
	}
	times := func(name string, get func(result) []time.Duration, target map[apiserver.Variant]float64) figure {
		f := single(name, func(r result) time.Duration { return median(get(r)) }, target)
		f.spread = get
		return f
	}
	coldStart := times("cold start, every Service answers", func(r result) []time.Duration { return r.cold }, both(0.06, 1))
	coldStart.isStart = true
	return []figure{
		times("endpoint changed, first packet there", func(r result) []time.Duration { return r.change }, both(0.10, 0.95)),
		single("… 90th percentile", func(r result) time.Duration { return percentile(r.change, 90) }, both(1, 1)),
		single("… processor time", func(r result) time.Duration { return r.busy / time.Duration(max(1, len(r.change))) }, both(1, 1)),
		times("Service added, first packet there", func(r result) []time.Duration { return r.add }, nil),
		coldStart,
		size("resident memory at rest", func(m memory) int { return m.resident }, both(0.40, 0.40)),
		size("… of it anonymous", func(m memory) int { return m.anonymous }, nil),
		times("handshake with the last Service", func(r result) []time.Duration { return r.connect }, nil),
		{
			name: "handshakes without answer", of: func(r result) float64 { return float64(r.failed) },
			print: func(v float64) string { return fmt.Sprintf("%.0f", v) },
		},
	}
}

// targetServices is the size that the targets are stated for.
const targetServices = 10000

func report(results []result, facts []string, s settings) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# gridproxy against kube-proxy %s\n\n- %s\n", apiserver.Version, strings.Join(facts, "\n- "))
	fmt.Fprintf(&b, "- Services of 2 endpoints, all with topologyKeys; medians (smallest to largest) of %d changes, a third as many new Services, %d cold starts, %d handshakes; both take turns, a cold start at a time\n",
		s.changes, s.starts, s.connects)
	fmt.Fprintf(&b, "- one API server for all; minimal sync period 0 for both; the ratio is gridproxy's by kube-proxy's, less is better\n")
	for _, pair := range pairs(results) {
		theirs, ours := pair[0], pair[1]
		any := cmp.Or(theirs, ours)
		fmt.Fprintf(&b, "\n## %d Services, iptables-%s\n\n", any.services, any.variant)
		fmt.Fprintf(&b, "| | kube-proxy | gridproxy | ratio | target |\n|---|---|---|---|---|\n")
		for _, f := range figures() {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.name, f.cell(theirs), f.cell(ours), f.compare(theirs, ours))
		}
	}
	return b.String()
}

// pairs puts side by side what was measured of the two programs under the same conditions; nil where one
// was not measured.
func pairs(results []result) [][2]*result {
	var all [][2]*result
	for i := range results {
		r := &results[i]
		side := 0
		if r.proxy == gridproxy {
			side = 1
		}
		if n := len(all) - 1; n >= 0 && all[n][side] == nil && all[n][1-side].services == r.services && all[n][1-side].variant == r.variant {
			all[n][side] = r
			continue
		}
		var pair [2]*result
		pair[side] = r
		all = append(all, pair)
	}
	return all
}

func (f figure) cell(r *result) string {
	switch {
	case r == nil || r.unserved > 0 && !f.isStart:
		return "–"
	case r.unserved > 0:
		return fmt.Sprintf("not within %s", r.unserved)
	}
	text := f.print(f.of(*r))
	if f.spread == nil || len(f.spread(*r)) < 2 {
		return text
	}
	all := f.spread(*r)
	return fmt.Sprintf("%s (%s to %s)", text, short(slices.Min(all)), short(slices.Max(all)))
}

// compare is the ratio and what is to be said of it.
func (f figure) compare(theirs, ours *result) string {
	if theirs == nil || ours == nil || theirs.unserved > 0 || f.of(*theirs) == 0 {
		return "– |"
	}
	ratio := f.of(*ours) / f.of(*theirs)
	target, ok := f.target[ours.variant]
	if !ok || ours.services != targetServices {
		return fmt.Sprintf("%.2f |", ratio)
	}
	return fmt.Sprintf("%.2f | ≤ %.2f %s", ratio, target, metOrMissed(ratio <= target))
}

// short rounds to three digits.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
		if d >= 10*unit {
			return d.Round(unit / 10).String()
		}
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// median of an odd number is the middle one, else the lower of the two.
func median[T cmp.Ordered](all []T) T { return percentile(all, 50) }

// percentile is the smallest value that so many percent of all do not exceed; zero of none.
func percentile[T cmp.Ordered](all []T, percent int) (p T) {
	if len(all) == 0 {
		return p
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*percent+99)/100-1]
}

// machine is what the figures depend on.
func machine(ctx context.Context) []string {
	var u unix.Utsname
	kernel := "unknown kernel"
	if err := unix.Uname(&u); err == nil {
		kernel = "Linux " + unix.ByteSliceToString(u.Release[:])
	}
	version, err := exec.CommandContext(ctx, "iptables-nft", "--version").Output()
	if err != nil {
		version = []byte("unknown iptables")
	}
	var info unix.Sysinfo_t
	memory := "unknown memory"
	if err := unix.Sysinfo(&info); err == nil {
		memory = fmt.Sprintf("%d GiB", info.Totalram*uint64(info.Unit)>>30)
	}
	return []string{
		fmt.Sprintf("%s, %d processors (%s), %s", kernel, runtime.NumCPU(), processor(), memory),
		fmt.Sprintf("%s, %s, %s", strings.TrimSpace(string(version)), runtime.Version(), time.Now().Format(time.DateOnly)),
	}
}

func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
