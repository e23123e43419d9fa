package ipvs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/rules"

	"golang.org/x/sys/unix"
)

// DefaultScheduler is used if neither a Service nor the operator names another: round robin.
const DefaultScheduler = "rr"

// hashScheduler hashes the client's port too, as with kube-proxy.
const hashScheduler = "mh"

// Schedulers returns the schedulers of all kernels to date; see ipvsadm(8). No other name is
// tried: the kernel hands it to the module loader, and not every ip_vs_* is a scheduler.
func Schedulers() []string {
	return []string{"rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh", "mh", "sed", "nq", "fo", "ovf", "twos"}
}

// schedulerOf decides which scheduler a Service gets: the one of its annotation, if it is in
// Schedulers and the kernel has it, else the operator's.
func (c Config) schedulerOf(s *rules.Service) string {
	if slices.Contains(Schedulers(), s.Scheduler) && !slices.Contains(c.Lacks, s.Scheduler) {
		return s.Scheduler
	}
	return cmp.Or(c.Scheduler, DefaultScheduler)
}

func checkScheduler(name string) error {
	if !slices.Contains(Schedulers(), name) {
		return fmt.Errorf("IPVS scheduler %q is unknown: use one of %s", name, strings.Join(Schedulers(), ", "))
	}
	return nil
}

func schedulerModule(scheduler string) string { return "ip_vs_" + scheduler }

// probedSchedulers remembers which schedulers of Services the kernel has.
type probedSchedulers struct {
	has   map[string]bool
	lacks []string // of those last asked about; sorted
}

// forget drops what the kernel lacked, so that look tries it again: a module may have been
// loaded.
func (s *probedSchedulers) forget() {
	maps.DeleteFunc(s.has, func(_ string, has bool) bool { return !has })
}

// look sets lacks to the schedulers of Services that the kernel lacks. try asks the kernel for
// one: its error is ENOENT if the kernel lacks it, and any other ends look. Each is tried once.
func (s *probedSchedulers) look(services []*rules.Service, try func(string) error) error {
	var lacks []string
	for _, service := range services {
		name := service.Scheduler
		if name == "" {
			continue
		}
		has, err := s.ask(name, try)
		if err != nil {
			return err
		}
		if !has {
			lacks = append(lacks, name)
		}
	}
	slices.Sort(lacks)
	s.lacks = slices.Compact(lacks)
	return nil
}

func (s *probedSchedulers) ask(name string, try func(string) error) (bool, error) {
	has, known := s.has[name]
	if known || checkScheduler(name) != nil {
		return has, nil //nolint:nilerr // no kernel has a name that is not in Schedulers
	}
	switch err := try(name); {
	case err == nil:
		has = true
	case !errors.Is(err, unix.ENOENT):
		return false, fmt.Errorf("asking the kernel for scheduler %s: %w", name, err)
	}
	if s.has == nil {
		s.has = map[string]bool{}
	}
	s.has[name] = has
	return has, nil
}

// tryScheduler returns an error if the kernel lacks a scheduler: see kernel.tryScheduler.
// Without a family in use it asks nothing and returns nil, because no virtual server needs it.
func (b *Backend) tryScheduler(name string) error {
	if len(b.config.Families) == 0 {
		return nil
	}
	return b.kernel.tryScheduler(b.config.Families[0], name)
}
