package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

type ipvsSettings struct {
	services, changes, connects int
	variant                     string
}

func runIPVS(args []string) int {
	var s ipvsSettings
	return subcommand{
		name: "-ipvs", limit: time.Hour,
		flags: func(flags *flag.FlagSet) {
			flags.IntVar(&s.services, "services", 300, "number of Services")
			flags.IntVar(&s.changes, "changes", 7, "how often a change is measured")
			flags.IntVar(&s.connects, "connects", 500, "connections to take the first packet's time from")
			flags.StringVar(&s.variant, "variant", "nft", "variant of iptables: nft or legacy")
		},
		check: func() error { return nil },
		run: func(ctx context.Context) error {
			results, err := compareIPVS(ctx, s)
			fmt.Print(ipvsReport(s, results))
			return err
		},
	}.start(args)
}

// compareIPVS measures all contenders, one after the other. What was measured before an error is
// returned with it.
func compareIPVS(ctx context.Context, s ipvsSettings) (results []ipvsResult, err error) {
	w, err := newIPVSWorld(s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for _, c := range contenders() {
		say("%s, %d Services", c.name, s.services)
		r, err := w.measure(ctx, c)
		if err != nil {
			return results, fmt.Errorf("%s: %w", c.name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// ipvsReport returns a table for people: what the first contender took, and the others' with their
// ratio to it.
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
