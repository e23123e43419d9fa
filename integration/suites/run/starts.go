package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
)

// starts counts the programs that the processes of suites start, by the kernel's events of
// processes. Programs in virtual machines are not seen. Where the kernel has no such events, or
// drops some because the machine is busy, counts are too low.
type starts struct {
	mu    sync.Mutex
	suite map[uint32]uint32 // the process of the suite that a process descends from
	count map[uint32]int    // programs, by the process of the suite
}

// countStarts counts the programs that descendants of this process start, until ctx ends.
func countStarts(ctx context.Context) (*starts, error) {
	s := &starts{suite: map[uint32]uint32{}, count: map[uint32]int{}}
	events, failed := make(chan netlink.ProcEvent), make(chan error, 1)
	if err := netlink.ProcEventMonitor(events, ctx.Done(), failed); err != nil {
		return s, fmt.Errorf("subscribing to the kernel's events of processes: %w", err)
	}
	go func() {
		for e := range events {
			s.note(e)
		}
		if ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "warning: reading the kernel's events of processes: %v: STARTS are too low\n", <-failed)
		}
	}()
	return s, nil
}

func (s *starts) note(e netlink.ProcEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := e.Msg.(type) {
	case *netlink.ForkProcEvent:
		suite, found := s.suite[m.ParentTgid]
		switch {
		case m.ChildPid != m.ChildTgid: // a thread
		case m.ParentTgid == uint32(os.Getpid()):
			s.suite[m.ChildTgid] = m.ChildTgid
		case found:
			s.suite[m.ChildTgid] = suite
		default: // an end of the process that had this number before may have been dropped
			delete(s.suite, m.ChildTgid)
		}
	case *netlink.ExecProcEvent:
		if suite, found := s.suite[m.ProcessTgid]; found {
			s.count[suite]++
		}
	case *netlink.ExitProcEvent:
		if m.ProcessPid == m.ProcessTgid {
			delete(s.suite, m.ProcessTgid)
		}
	}
}

// of returns how many programs a child of this process and its descendants have started, and
// forgets it.
func (s *starts) of(pid int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.count[uint32(pid)]
	delete(s.count, uint32(pid))
	return n
}
