package netns

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/vishvananda/netns"
)

// spawner starts programs from one thread that lives as long as the lab. The kernel kills
// a program whose parent *thread* ends (PR_SET_PDEATHSIG), so a thread of the scheduler's
// own choice would not do.
type spawner struct {
	jobs chan func()
	done chan struct{}

	mu       sync.Mutex
	children []*Process
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		runtime.LockOSThread() // never unlocked: the thread ends here, and with it its children
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// start starts cmd inside ns. The program is killed when the lab's process ends.
func (s *spawner) start(ns netns.NsHandle, cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// A group of its own: Ctrl-C in a terminal reaches the lab's program alone, which then
	// ends its children in good order.
	cmd.SysProcAttr.Setpgid = true

	started := make(chan error, 1)
	s.jobs <- func() {
		home, err := netns.Get()
		if err != nil {
			started <- fmt.Errorf("reading the network namespace of this thread: %w", err)
			return
		}
		defer home.Close()
		if err := netns.Set(ns); err != nil {
			started <- fmt.Errorf("entering a network namespace: %w", err)
			return
		}
		started <- errors.Join(cmd.Start(), netns.Set(home))
	}
	return <-started
}

// adopt makes close end the program too.
func (s *spawner) adopt(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children = append(s.children, p)
}

// close kills what still runs, waits for it, and ends the thread.
func (s *spawner) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.children {
		p.Kill()
	}
	close(s.jobs)
	<-s.done
}
