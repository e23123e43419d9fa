package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gridproxy/integration/need"
)

func main() { os.Exit(run(os.Stdout, os.Stderr)) }

func run(out, diag io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := demo(ctx, out)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(diag, "\ninterrupted; everything that was started is gone again")
		return 130
	case err != nil:
		fmt.Fprintln(diag, "\ncluster-demo:", err)
		return 1
	}
	return 0
}

// demo is the whole story, top to bottom.
func demo(ctx context.Context, out io.Writer) (err error) {
	if missing := need.MissingCluster(); missing != "" {
		return errors.New(missing)
	}
	dir, err := os.MkdirTemp("", "gridproxy-cluster-")
	if err != nil {
		return fmt.Errorf("making a folder for the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &stage{out: out, dir: dir, began: time.Now()}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, step := range []func(context.Context) error{
		s.build, s.start, s.install, s.apply, s.show, s.ask,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
