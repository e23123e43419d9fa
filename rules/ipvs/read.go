package ipvs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readTries is how often the list of servers is read until it is the same twice.
const readTries = 5

// observe reads everything back. What is read while somebody changes it is read again, so
// that nothing is deleted, nor thought to be gone, on the strength of a short list. believed
// is what the kernel should hold, nil = nobody knows: where it does, one look is enough.
func (k *kernel) observe(believed *kernelState) (kernelState, error) {
	o, err := k.readServers(believed)
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

// readServers reads everybody's servers and how many connections they have, until it finds
// what is believed or twice the same.
func (k *kernel) readServers(believed *kernelState) (kernelState, error) {
	if k.servers == nil {
		return kernelState{}, nil
	}
	before := believed
	for range readTries {
		now, err := readProcServers()
		if err != nil {
			return kernelState{}, err
		}
		if before != nil && unchanged(now, *before) {
			return now, nil
		}
		if err := k.addMissing(&now); err != nil {
			return kernelState{}, err
		}
		if before != nil && unchanged(now, *before) {
			return now, nil
		}
		before = &now
	}
	return kernelState{}, fmt.Errorf("listing virtual servers: they changed each of %d times; somebody else keeps changing them", readTries)
}

func unchanged(a, b kernelState) bool {
	return maps.Equal(a.Servers, b.Servers) && maps.Equal(a.Destinations, b.Destinations)
}

// readProcServers reads the list once. It may be short: see addMissing.
func readProcServers() (kernelState, error) {
	tick, err := kernelTick()
	if err != nil {
		return kernelState{}, err
	}
	return withProcServers(func(r io.Reader) (kernelState, error) { return parseProc(r, tick) })
}

// kernelTick is in what the kernel counts time (1/HZ): the coarse clock advances by it.
func kernelTick() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &ts); err != nil {
		return 0, fmt.Errorf("asking for the resolution of the kernel's coarse clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// readProcConnections reads how many connections some destinations have.
func readProcConnections(of map[DestinationKey]time.Time) (map[DestinationKey]int, error) {
	return withProcServers(func(r io.Reader) (map[DestinationKey]int, error) { return parseProcConnections(r, of) })
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

// hasSets reports whether the kernel has ipsets at all. Only a kernel without them gives the
// answers that mean no: whatever else goes wrong is an error, not an empty list.
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
