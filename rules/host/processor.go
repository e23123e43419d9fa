package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime returns the processor time that this process and the programs that it has
// waited for have used so far, in user and in kernel mode. It includes what other goroutines
// do.
func ProcessorTime() time.Duration {
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var used unix.Rusage
		if unix.Getrusage(who, &used) == nil { // it fails only for another who
			total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return total
}

// ThreadTime returns what the calling thread has used of the processors so far. The caller locks
// its goroutine to the thread.
func ThreadTime() time.Duration {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &used) // it fails only for another constant
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
