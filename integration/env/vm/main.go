package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// failed is the exit code where the machine, not the program, went wrong.
const failed = 125

func main() {
	if os.Getpid() == 1 {
		guestMain()
		return
	}
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	flags := flag.NewFlagSet("vmexec", flag.ContinueOnError)
	series := flags.String("kernel", "6.1", "series of the kernel: 6.1 or 6.12")
	memory := flags.Int("memory", 2048, "memory of the machine in MiB")
	ownClock := flags.Bool("own-clock", false, "the machine's time goes on with what it executes, whatever the host has time for; never with KVM")
	fetch := flags.Bool("fetch", false, "only fetch the kernel")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: vmexec [flags] PROGRAM [ARGUMENT...]   run a program in a virtual machine")
		fmt.Fprintln(flags.Output(), "       go test -exec 'vmexec [flags]' PACKAGE...")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return failed
	}
	// go test sends SIGQUIT to a test that takes too long.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	defer stop()
	code, err := 0, error(nil)
	switch {
	case runtime.GOARCH != "amd64":
		err = fmt.Errorf("vmexec has kernels for amd64 only, and this is %s", runtime.GOARCH)
	case *fetch:
		_, err = EnsureKernel(ctx, *series, os.Stderr)
	case flags.NArg() == 0:
		flags.Usage()
		return failed
	default:
		code, err = runGuest(ctx, *series, Machine{Memory: *memory, OwnClock: *ownClock}, flags.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmexec:", strings.TrimRight(err.Error(), "\n"))
		return failed
	}
	return code
}
