package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules/host"
	"gridproxy/topology/watch"
)

// EndLimit is how long the process may run after SIGTERM. A sync in progress is ended after 3 s;
// this limit is for what cannot be ended, such as a system call that does not return.
const EndLimit = 4500 * time.Millisecond

// How much the heap may grow between two garbage collections, in percent. An edge node has
// little memory and, while it is quiet, much processor time. Traffic waits for the first run,
// which has fewer collections. With names, each change makes twice as many new lists. The variable
// GOGC overrides all three.
const (
	gcPercentStarting  = 50
	gcPercentSettled   = 10
	gcPercentWithNames = 25
)

// Run runs the daemon until ctx ends, which is no error, or one of its parts fails. It first
// waits for another daemon to end. file is that of --config, nil if it is not watched.
func Run(ctx context.Context, o options.Options, in io.Reader, file *watch.FileConfig, log *slog.Logger) error {
	setGCPercent(gcPercentStarting)
	adjustOOMScore(o.OOMScoreAdj, log)
	if err := watch.PingSooner(); err != nil {
		log.Warn(fmt.Sprintf("a dead connection to the API server is found after 45 s only: %v", err))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var d *daemon
	release, err := lockNamespace(ctx, o, host.RecordDir, oldDaemonLimit, log)
	if err == nil {
		defer release()
		d, err = newDaemon(ctx, o, in, log)
	}
	if err != nil && ctx.Err() != nil {
		log.Info("ended during the start; the rules in the kernel stay in force", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	d.config = file
	return d.run(ctx, cancel)
}

// run starts every part, waits until all have ended, and returns the first error. An error
// calls cancel, and limits the wait to EndLimit. Only an error of a part ends the daemon
// without a signal: of the source, the syncer, one with --bind-address-hard-fail, or a new
// --config.
func (d *daemon) run(ctx context.Context, cancel context.CancelFunc) error {
	var parts sync.WaitGroup
	failed := make(chan error, 1) // the first error
	part := func(run func(context.Context) error) {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				select {
				case failed <- err:
				default:
				}
				cancel()
			}
		})
	}
	part(func(context.Context) error { return <-d.reading })
	part(func(ctx context.Context) error {
		err := d.syncer.Run(ctx)
		if d.saver != nil {
			d.saver.Flush() // after the last run
		}
		return err
	})
	part(d.awaitConfigChange)
	if d.saver != nil {
		part(d.saver.Run)
	}
	if d.dns != nil {
		part(d.dns.Run)
	}
	for _, s := range d.servers {
		part(func(ctx context.Context) error {
			return s.run(ctx, func(err error) { d.serverFailed(s, err) })
		})
	}
	ended := make(chan struct{})
	go func() {
		parts.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
		select {
		case err = <-failed:
		default:
		}
	case err = <-failed:
		select {
		case <-ended:
		case <-time.After(EndLimit): // as after a signal
			d.log.Warn("a sync does not end; exiting without waiting any longer", "limit", EndLimit)
		}
	}
	d.log.Info("ended; the rules in the kernel stay in force")
	return err
}

// awaitConfigChange waits until the file of --config has other content than at the start, and
// then returns an error. As in kube-proxy, the process ends as failed, and whatever starts it
// again makes it read the new content. Flags cannot be changed while the daemon runs. If the file
// is not watched, or if ctx ends first, it returns nil.
func (d *daemon) awaitConfigChange(ctx context.Context) error {
	if d.config == nil || !watch.FileChanged(ctx, *d.config) {
		return nil
	}
	return fmt.Errorf("--config %s has changed since the start, so this process ends, to be started again with the new content; until then the rules in the kernel stay in force, and changes of Services are not followed", d.config.Path)
}

// adjustOOMScore sets how soon the kernel ends this process, and the programs that it starts,
// where memory is short; nil changes nothing. A lower score than the present one needs the
// capability SYS_RESOURCE. A failure is only logged.
func adjustOOMScore(score *int16, log *slog.Logger) {
	if score == nil {
		return
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(*score))), 0); err != nil {
		log.Warn(fmt.Sprintf("--oom-score-adj %d is not in force: %v; add the capability SYS_RESOURCE, or remove the flag", *score, err))
	}
}

// percentAfterStart returns by how many percent the heap may grow after the first run.
func percentAfterStart(o options.Options) int {
	if o.DNS.Enabled {
		return gcPercentWithNames
	}
	return gcPercentSettled
}

// setGCPercent sets by how many percent the heap may grow, unless GOGC is set.
func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
