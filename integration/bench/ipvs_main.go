package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

// ipvsSettings are the command line.
type ipvsSettings struct {
	services, changes, connects int
	variant                     string
	limit                       time.Duration
}

func runIPVS(args []string) int {
	s := ipvsSettings{}
	flags := flag.NewFlagSet("bench -ipvs", flag.ContinueOnError)
	flags.IntVar(&s.services, "services", 300, "number of Services")
	flags.IntVar(&s.changes, "changes", 7, "how often a change is measured")
	flags.IntVar(&s.connects, "connects", 500, "connections to take the first packet's time from")
	flags.StringVar(&s.variant, "variant", "nft", "variant of iptables: nft or legacy")
	flags.DurationVar(&s.limit, "limit", time.Hour, "give up after this long")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.limit, fmt.Errorf("the benchmark takes longer than -limit %s", s.limit))
	defer cancel()
	results, err := compareIPVS(ctx, s)
	fmt.Print(ipvsReport(s, results))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
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
