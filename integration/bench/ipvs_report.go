package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// ipvsReport is a table for people: what the first contender took, and the others' with their ratio
// to it.
func ipvsReport(s ipvsSettings, results []ipvsResult) string {
	if len(results) == 0 {
		return ""
	}
	var b strings.Builder
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease") // "" where it cannot be read
	fmt.Fprintf(&b, "%d Services of two endpoints, Linux %s, iptables-%s; medians of %d changes and %d handshakes, one cold start.\n\n|  |",
		s.services, strings.TrimSpace(string(release)), s.variant, s.changes, s.connects)
	for i, r := range results {
		if fmt.Fprintf(&b, " %s |", r.name); i > 0 {
			b.WriteString(" ratio |")
		}
	}
	fmt.Fprintf(&b, "\n|%s\n", strings.Repeat(" --- |", 2*len(results)))
	for _, row := range []struct {
		what string
		of   func(ipvsResult) time.Duration
	}{
		{"cold start, every Service answers", func(r ipvsResult) time.Duration { return r.cold }},
		{"endpoint changed, first packet there", func(r ipvsResult) time.Duration { return median(r.change) }},
		{"Service added, first packet there", func(r ipvsResult) time.Duration { return median(r.add) }},
		{"handshake with the last Service", func(r ipvsResult) time.Duration { return median(r.connect) }},
	} {
		fmt.Fprintf(&b, "| %s |", row.what)
		base := row.of(results[0])
		for i, r := range results {
			if fmt.Fprintf(&b, " %s |", short(row.of(r))); i > 0 {
				fmt.Fprintf(&b, " %.3f |", float64(row.of(r))/float64(base))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
