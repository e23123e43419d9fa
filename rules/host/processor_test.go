package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
)

// used is the processor time of a process that runs, in ticks of 10 ms.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	if errUser != nil || errSystem != nil {
		t.Fatalf("unexpected /proc/%d/stat: %s", pid, stat)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// TestProcessorTime: the time of a program counts once it was waited for, also if it was killed.
func TestProcessorTime(t *testing.T) {
	before := ProcessorTime()
	cmd := Command(t.Context(), "sh", "-c", "while :; do :; done")
	must(t, cmd.Start())
	wait.Until(t, "the program has used the processor", func() error {
		now := used(t, cmd.Process.Pid)
		return wait.Check(now >= 50*time.Millisecond, "for %s", now)
	})
	must(t, cmd.Cancel())
	_ = cmd.Wait() // it was killed
	if took := ProcessorTime() - before; took < 50*time.Millisecond {
		t.Errorf("%v, want the time of the program too", took)
	}
}
