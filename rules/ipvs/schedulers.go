package ipvs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules"

	"golang.org/x/sys/unix"
)

// Schedulers are those of any kernel to date; see ipvsadm(8). A Service that asks for another gets
// the one of Config, as where the kernel lacks one. The kernel is asked for no other: it takes a
// name to the module loader, and not every ip_vs_* is a scheduler.
func Schedulers() []string {
	return []string{"rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh", "mh", "sed", "nq", "fo", "ovf", "twos"}
}

func checkScheduler(name string) error {
	if !slices.Contains(Schedulers(), name) {
		return fmt.Errorf("IPVS scheduler %q is unknown: use one of %s", name, strings.Join(Schedulers(), ", "))
	}
	return nil
}

// schedulers remembers which of those that Services ask for the kernel has.
type schedulers struct {
	has   map[string]bool
	lacks []string // of those last asked about; sorted
}

// forget makes the kernel be asked again for what it did not have: modules can be loaded.
func (s *schedulers) forget() {
	for name, has := range s.has {
		if !has {
			delete(s.has, name)
		}
	}
}

// look asks for the schedulers that Services ask for, as far as need be. try asks the kernel
// for one.
func (s *schedulers) look(services []*rules.Service, try func(string) error) error {
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

func (s *schedulers) ask(name string, try func(string) error) (bool, error) {
	has, known := s.has[name]
	if known || checkScheduler(name) != nil {
		return has, nil //nolint:nilerr // a name that is no scheduler is one that no kernel has
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
