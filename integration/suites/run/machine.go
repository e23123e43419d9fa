package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"gridproxy/integration/suites"
)

// The calibration starts each program a hundred times, within this time.
const calibrationLimit = time.Minute

// calibrate measures what it costs to start programs. Chains are made in a network namespace that
// ends with the shell that makes them.
func calibrate(ctx context.Context) suites.Machine {
	ctx, cancel := context.WithTimeout(ctx, calibrationLimit)
	defer cancel()
	average := func(command, wrapper string) time.Duration {
		begin := time.Now()
		script := "for i in $(seq 100); do " + command + " || exit 1; done"
		if exec.CommandContext(ctx, "sh", "-c", wrapper+` sh -c "$0"`, script).Run() != nil {
			return 0
		}
		return time.Since(begin) / 100
	}
	return suites.Machine{
		Cores:        runtime.NumCPU(),
		ProgramStart: average("/bin/true", ""),
		NewChain:     average("iptables-nft -N chain-$i", "unshare --net"),
	}
}

// readPressure returns how long tasks have waited for a core since the machine started, or 0.
func readPressure() time.Duration {
	text, _ := os.ReadFile("/proc/pressure/cpu") // empty if the kernel does not report it
	return suites.ParsePressure(string(text))
}

// startBurden starts busy processes, as other programs of the machine are. stop ends them; they end
// too when this process is killed.
func startBurden(ctx context.Context, root string, processes int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for range processes {
		running.Go(func() { _ = command(ctx, root, "sh", "-c", "while kill -0 $PPID; do :; done").Run() }) // stop kills it
	}
	return func() { cancel(); running.Wait() }
}
