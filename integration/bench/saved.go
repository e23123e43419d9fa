package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gridproxy/integration/env/apiserver"
)

// savedStarts compares a cold start from the state on disk, without an API server, with one from
// the API server.
type savedStarts struct {
	services, starts int
	variant          apiserver.Variant
}

func runSaved(args []string) int {
	c := savedStarts{variant: apiserver.NFT}
	return subcommand{
		name: "-saved", limit: 30 * time.Minute,
		flags: func(fs *flag.FlagSet) {
			fs.IntVar(&c.services, "services", 5000, "Services")
			fs.IntVar(&c.starts, "starts", 5, "cold starts of each kind")
		},
		check: func() error {
			if c.services < 10 || c.services > 20000 || c.starts < 1 {
				return errors.New("want 10 to 20000 Services and at least 1 start")
			}
			return nil
		},
		run: func(ctx context.Context) error { return c.compare(ctx) },
	}.start(args)
}

func (c savedStarts) compare(ctx context.Context) (err error) {
	w, err := newWorld(ctx, settings{startLimit: 5 * time.Minute})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.seed(ctx, c.services); err != nil {
		return fmt.Errorf("making %d Services: %w", c.services, err)
	}
	var fromAPI, fromDisk []time.Duration
	for range c.starts { // in turns, because a machine is not equally fast all the time
		took, err := c.start(ctx, w)
		if err != nil {
			return fmt.Errorf("starting from the API server: %w", err)
		}
		fromAPI = append(fromAPI, took)
		w.cluster.API.Stop()
		took, err = c.start(ctx, w)
		if err != nil {
			return fmt.Errorf("starting from disk: %w", err)
		}
		fromDisk = append(fromDisk, took)
		if err := w.cluster.API.Start(ctx); err != nil {
			return err
		}
		say("cold start from the API server %s, from disk %s", short(fromAPI[len(fromAPI)-1]), short(took))
	}
	info, err := os.Stat(filepath.Join(c.dir(w), "state"))
	if err != nil {
		return fmt.Errorf("looking at the saved state: %w", err)
	}
	fmt.Printf("\n%d Services, %d kB on disk. Median of %d cold starts: from disk %.2f times from the API server (%s of %s)\n", c.services, info.Size()/1000,
		c.starts, float64(median(fromDisk))/float64(median(fromAPI)), short(median(fromDisk)), short(median(fromAPI)))
	return nil
}

func (c savedStarts) dir(w *world) string { return filepath.Join(w.dir, "saved") }

// start times one cold start. What is enforced is saved at its end.
func (c savedStarts) start(ctx context.Context, w *world) (time.Duration, error) {
	if err := w.wipe(ctx, gridproxy, c.variant); err != nil {
		return 0, fmt.Errorf("emptying the tables: %w", err)
	}
	d, took, err := w.coldStart(ctx, gridproxy, c.variant, []string{"--state-dir=" + c.dir(w), "--status-socket="})
	if d != nil {
		d.stop()
	}
	return took, err
}
