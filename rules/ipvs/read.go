package ipvs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// observe reads everything. It reads again what changed meanwhile, because an incomplete list would
// make objects look missing. expected is what the kernel should hold; nil = unknown. If the kernel
// holds that, one reading is enough. ctx ends it between two messages to the kernel, and between
// two pages of /proc.
func (k *kernel) observe(ctx context.Context, expected *kernelState) (kernelState, error) {
	o, err := k.readServers(ctx, expected)
	if err != nil {
		return kernelState{}, err
	}
	if o.Addresses, err = k.readAddresses(); err != nil {
		return kernelState{}, err
	}
	o.Link = k.link != nil
	o.Entries, o.Sets = map[Entry]struct{}{}, map[string]string{}
	if has, err := k.hasSets(); err != nil || !has {
		return o, err
	}
	for _, s := range knownSets() {
		if ctx.Err() != nil {
			return kernelState{}, context.Cause(ctx)
		}
		listed, found, err := readSet(s.name)
		if err != nil {
			return kernelState{}, err
		}
		if !found {
			continue
		}
		o.Sets[s.name] = listed.kind
		for _, e := range listed.entries {
			o.Entries[e] = struct{}{}
		}
	}
	return o, nil
}

// readServers reads all servers, also those of other programs, until it finds what is expected
// (nil = unknown) or the same twice in a row. It returns an error after readTriesMax readings.
func (k *kernel) readServers(ctx context.Context, expected *kernelState) (kernelState, error) {
	if ctx.Err() != nil {
		return kernelState{}, context.Cause(ctx)
	}
	if k.servers == nil {
		return kernelState{}, nil
	}
	before := expected
	for range readTriesMax {
		now, err := readProcServers(ctx)
		if err != nil {
			return kernelState{}, err
		}
		if before != nil && unchanged(now, *before) {
			return now, nil
		}
		if err := k.addMissing(ctx, &now); err != nil {
			return kernelState{}, err
		}
		if before != nil && unchanged(now, *before) {
			return now, nil
		}
		before = &now
	}
	return kernelState{}, fmt.Errorf("listing virtual servers: they changed each of %d times; another program keeps changing them", readTriesMax)
}

func unchanged(a, b kernelState) bool {
	return maps.Equal(a.Servers, b.Servers) && maps.Equal(a.Destinations, b.Destinations)
}

// readProcServers reads the list once. It may be incomplete: see addMissing.
func readProcServers(ctx context.Context) (kernelState, error) {
	tick, err := kernelTick()
	if err != nil {
		return kernelState{}, err
	}
	return withProcServers(func(r io.Reader) (kernelState, error) { return parseProc(untilEnd{ctx, r}, tick) })
}

// untilEnd reads until ctx ends.
type untilEnd struct {
	ctx context.Context
	io.Reader
}

func (r untilEnd) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(b)
}

// kernelTick returns the unit in which the kernel counts time (1/HZ): the coarse clock advances
// by it.
func kernelTick() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &ts); err != nil {
		return 0, fmt.Errorf("asking for the resolution of the kernel's coarse clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

func withProcServers[T any](parse func(io.Reader) (T, error)) (T, error) {
	var none T
	f, err := os.Open(procServers)
	if err != nil {
		return none, fmt.Errorf("listing virtual servers: %w", err)
	}
	defer f.Close()
	parsed, err := parse(bufio.NewReaderSize(f, 1<<16))
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", procServers, err)
	}
	return parsed, nil
}

// hasSets reports whether the kernel has ipsets. Only the answers of a kernel without them mean no.
// Every other failure is an error, not an empty list.
func (k *kernel) hasSets() (bool, error) {
	_, _, err := k.sets.IpsetProtocol()
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOENT):
		return false, nil
	default:
		return false, fmt.Errorf("asking the kernel whether it has ipsets: %w", err)
	}
}
