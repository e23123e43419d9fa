package ipvs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/topology"

	"golang.org/x/sys/unix"
)

const defaultScheduler = "rr"

// kernelSchedulers are those of any kernel to date; see ipvsadm(8). The kernel is asked for
// no other: it takes a name to the module loader, and not every ip_vs_* is a scheduler.
func kernelSchedulers() []string {
	return []string{"rr", "wrr", "lc", "wlc", "lblc", "lblcr", "dh", "sh", "mh", "sed", "nq", "fo", "ovf", "twos"}
}

func checkScheduler(name string) error {
	if !slices.Contains(kernelSchedulers(), name) {
		return fmt.Errorf("IPVS scheduler %q is unknown: use one of %s", name, strings.Join(kernelSchedulers(), ", "))
	}
	return nil
}

// UnknownScheduler is a Service that asks for a scheduler that the kernel does not have.
type UnknownScheduler struct {
	Service   topology.ServicePortName
	Scheduler string
}

// schedulers remembers which of those that Services ask for the kernel has.
type schedulers struct {
	has     map[string]bool
	unknown []UnknownScheduler // of the Services last asked about
}

// forget makes the kernel be asked again for what it did not have: modules can be loaded.
func (s *schedulers) forget() {
	for name, has := range s.has {
		if !has {
			delete(s.has, name)
		}
	}
}

// lacking is what the kernel does not have of what Services ask for, sorted. try asks the
// kernel for one.
func (s *schedulers) lacking(services []*rules.Service, try func(string) error) ([]string, error) {
	var lacks []string
	s.unknown = nil
	for _, service := range services {
		name := service.Scheduler
		if name == "" {
			continue
		}
		has, err := s.ask(name, try)
		if err != nil {
			return nil, err
		}
		if !has {
			s.unknown = append(s.unknown, UnknownScheduler{service.Name, name})
			lacks = append(lacks, name)
		}
	}
	slices.Sort(lacks)
	return slices.Compact(lacks), nil
}

func (s *schedulers) ask(name string, try func(string) error) (bool, error) {
	has, known := s.has[name]
	if known || checkScheduler(name) != nil {
		return has, nil
	}
	err := try(name)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return false, fmt.Errorf("asking the kernel for scheduler %s: %w", name, err)
	}
	if s.has == nil {
		s.has = map[string]bool{}
	}
	s.has[name] = err == nil
	return err == nil, nil
}
