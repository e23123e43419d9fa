package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// subcommand is a benchmark that the first argument of the program chooses.
type subcommand struct {
	name  string // -nodes; "" = that of the program without one
	limit time.Duration
	flags func(*flag.FlagSet)
	check func() error // of the flags
	run   func(context.Context) error
}

// start parses the arguments and runs the benchmark, until its limit or a signal. It returns the
// exit code.
func (s subcommand) start(args []string) int {
	name := strings.TrimSpace("bench " + s.name)
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	s.flags(flags)
	flags.DurationVar(&s.limit, "limit", s.limit, "give up after this long")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if err := s.check(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("the benchmark takes longer than -limit %s", s.limit))
	defer cancel()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}
