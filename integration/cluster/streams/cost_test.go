package streams

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// cost is what a daemon used while many Services came and went on the machine.
type cost struct {
	rss     int           // KiB, at the end
	peak    int           // KiB
	cpu     time.Duration // of it and of the programs that it ran
	elapsed time.Duration
}

// measured is the machine whose daemons are compared.
const measured = "bj-1"

// measure lets many Services come and go and returns what the daemon of a name used meanwhile.
func (w *world) measure(name string) cost {
	w.t.Helper()
	pid := w.pid(measured, name)
	if pid == 0 {
		w.t.Fatalf("no %s runs on %s", name, measured)
	}
	begin, before := time.Now(), w.cpu(pid)
	w.create("measured")
	w.counts("measured", many)
	w.drop("measured")
	c := cost{cpu: w.cpu(pid) - before, elapsed: time.Since(begin)}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	w.must(err)
	c.rss, c.peak = field(string(status), "VmRSS:"), field(string(status), "VmHWM:")
	return c
}

// field is a number of KiB in /proc/PID/status.
func field(status, name string) int {
	for line := range strings.Lines(status) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			n, _ := strconv.Atoi(words[1])
			return n
		}
	}
	return 0
}

// cpu is the time that a process and its ended children have had, in user and system mode.
func (w *world) cpu(pid int) time.Duration {
	w.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	w.must(err)
	words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int
	for _, word := range words[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.Atoi(word)
		w.must(err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// printCosts prints what two daemons used, side by side.
func (w *world) printCosts(kubeProxy, ours cost) {
	fmt.Fprintf(os.Stderr, "\non %s, with 4 open and %d new Services that come and go:\n", measured, many)
	fmt.Fprintf(os.Stderr, "  %-12s %12s %12s %14s %10s\n", "", "resident", "at most", "CPU time", "during")
	for _, row := range []struct {
		name string
		cost
	}{{"kube-proxy", kubeProxy}, {"gridproxy", ours}} {
		fmt.Fprintf(os.Stderr, "  %-12s %8.1f MiB %8.1f MiB %14s %10s\n", row.name, float64(row.rss)/1024, float64(row.peak)/1024,
			row.cpu, row.elapsed.Round(100*time.Millisecond))
	}
}
