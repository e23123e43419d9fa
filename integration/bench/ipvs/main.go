package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

// settings are the command line.
type settings struct {
	services, changes, connects int
	variant                     string
	limit                       time.Duration
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	s := settings{}
	flags := flag.NewFlagSet("ipvs", flag.ContinueOnError)
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
	results, err := compare(ctx, s)
	fmt.Print(report(s, results))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// compare measures all contenders, one after the other. What was measured before an error is returned
// with it.
func compare(ctx context.Context, s settings) (results []result, err error) {
	w, err := newWorld(s)
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

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
