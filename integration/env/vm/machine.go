package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const qemu = "qemu-system-x86_64"

// Machine is a machine that has not been started.
type Machine struct {
	Kernel string      // path of the kernel's image
	Image  *os.File    // the archive that it unpacks into its memory; read from its begin
	Memory int         // in MiB
	Config guestConfig // what the archive holds at guestConfigPath
	KVM    bool        // whether to use KVM

	// OwnClock makes the machine's time go on with the instructions that it executes, one in each
	// nanosecond. It stops while the host has no time for the machine, and a wait of the whole
	// machine ends at once. Only an emulated processor can do that.
	OwnClock bool
}

// commandLine is for the kernel. A panic ends the machine (QEMU exits where it would reboot). What
// only slows down an emulated processor is left out, and so are the watchdogs, because a machine on a
// busy host may stand still for long. Where programs lie at the same addresses each time (norandmaps),
// QEMU uses what it has translated again, and starting one takes a third of the time.
const commandLine = "console=ttyS0 quiet rdinit=/init panic=-1 oops=panic mitigations=off random.trust_cpu=on " +
	"cryptomgr.notests no_timer_check norandmaps nowatchdog rcupdate.rcu_cpu_stall_suppress=1"

// tailLines is how much of the console an error carries.
const tailLines = 60

// Run starts the machine, copies what its program writes to output, and returns the program's exit
// code. An error means that the machine ended without one, or that ctx ended first; it carries the end of
// the kernel's console.
func (m Machine) Run(ctx context.Context, output io.Writer) (int, error) {
	// The kernel ends QEMU when the *thread* that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	console, err := unnamedFile()
	if err != nil {
		return 0, fmt.Errorf("making a file for the console: %w", err)
	}
	defer console.Close()
	var diag bytes.Buffer
	cmd := exec.CommandContext(ctx, qemu, m.arguments()...)
	cmd.ExtraFiles = []*os.File{m.Image, console} // descriptors 3 and 4
	cmd.Stderr = &diag
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	serial, err := cmd.StdoutPipe()
	if err != nil {
		return 0, fmt.Errorf("reading the output of the machine: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting the machine (is QEMU installed? run `go run ./integration/suites/run -install qemu`): %w", err)
	}
	code, told, copyErr := m.follow(serial, output)
	if told || copyErr != nil {
		_ = cmd.Process.Kill() // fails only if it has ended, which is what is wanted
	}
	waitErr := cmd.Wait()
	switch {
	case told:
		return code, nil
	case copyErr != nil:
		return 0, fmt.Errorf("copying the output of the machine: %w", copyErr)
	case ctx.Err() != nil:
		err = fmt.Errorf("the machine was stopped: %w", context.Cause(ctx))
	default:
		err = errors.New("the machine ended before its program did: its kernel crashed, or QEMU did")
	}
	if waitErr != nil {
		err = fmt.Errorf("%w (QEMU: %w)", err, waitErr)
	}
	return 0, fmt.Errorf("%w\n%send of the console:\n%s", err, diag.String(), tail(console))
}

// arguments are QEMU's. The archive and the console are open files without a name, so nothing is left
// where QEMU and we are killed.
func (m Machine) arguments() []string {
	processor := []string{"-accel", "tcg", "-cpu", "Nehalem"} // emulating newer ones is slower
	switch {
	case m.OwnClock:
		processor = append(processor, "-icount", "shift=0,sleep=off", "-rtc", "clock=vm")
	case m.KVM:
		processor = []string{"-accel", "kvm", "-cpu", "host"}
	}
	return append(processor,
		"-M", "q35", "-smp", "1", "-m", fmt.Sprint(m.Memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-serial", "file:/proc/self/fd/4",
		"-chardev", "stdio,id=output,signal=off", "-serial", "chardev:output",
		"-kernel", m.Kernel, "-initrd", "/proc/self/fd/3", "-append", commandLine)
}

// follow copies lines to output until the one that tells the exit code, or until the machine has ended;
// why it did, its console says.
func (m Machine) follow(serial io.Reader, output io.Writer) (code int, told bool, err error) {
	lines := bufio.NewReader(serial)
	for more := true; more; {
		line, readErr := lines.ReadString('\n')
		text, code, told := m.Config.ReadLine(line)
		if _, err := io.WriteString(output, text); err != nil {
			return 0, false, err
		}
		if told {
			return code, true, nil
		}
		more = readErr == nil
	}
	return 0, false, nil
}

// HasKVM says whether KVM can run the machine. That /dev/kvm opens does not suffice: without hardware
// support (PVM) a kernel that was not made for it is interpreted, and never finishes booting.
func HasKVM() bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	info, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && virtualises(string(info))
}

// virtualises says whether the flags of a processor name Intel's or AMD's virtualisation.
func virtualises(cpuinfo string) bool {
	for line := range strings.Lines(cpuinfo) {
		key, flags, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) != "flags" {
			continue
		}
		for _, f := range strings.Fields(flags) {
			if f == "vmx" || f == "svm" {
				return true
			}
		}
	}
	return false
}

// unnamedFile is an open file that no folder has.
func unnamedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "vmexec-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tail is the end of what the kernel wrote.
func tail(console *os.File) string {
	size, err := console.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	begin := max(0, size-1<<16)
	b, err := io.ReadAll(io.NewSectionReader(console, begin, size-begin))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(b), "\r", "")), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n") + "\n"
}
