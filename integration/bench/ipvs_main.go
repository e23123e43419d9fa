package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"
)

// ipvsSettings are the command line.
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
