package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// outputDevice is the second serial line; the kernel's console is the first.
const outputDevice = "/dev/ttyS1"

// guestMain is the life of the first process. It does not return: at its end the machine is off.
// Errors are written to the console.
func guestMain() {
	if err := runGuestMain(); err != nil {
		fmt.Fprintln(os.Stderr, "vmexec in the guest:", err)
	}
	// Only this can stop a machine; should it fail, the kernel panics because its first process
	// ends, and the host sees that.
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintln(os.Stderr, "vmexec in the guest: switching off:", err)
	}
}

func runGuestMain() error {
	if err := mount(); err != nil {
		return err
	}
	config, err := readGuestConfig()
	if err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("guest")); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the loopback: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("starting the loopback: %w", err)
	}
	output, err := openOutput()
	if err != nil {
		return err
	}
	defer output.Close()
	code, err := runProgram(config, output)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(output, config.exitLine(code)); err != nil {
		return fmt.Errorf("telling the exit code: %w", err)
	}
	// Wait until the line has left the machine.
	if err := unix.IoctlSetInt(int(output.Fd()), unix.TCSBRK, 1); err != nil {
		return fmt.Errorf("emptying the serial line: %w", err)
	}
	return nil
}

func mount() error {
	for _, m := range [...]struct{ kind, at, options string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"devtmpfs", "/dev", ""},
		{"devpts", "/dev/pts", ""},
		{"tmpfs", "/dev/shm", ""},
		{"tmpfs", "/run", "mode=755"},
	} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return fmt.Errorf("making %s: %w", m.at, err)
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mounting %s: %w", m.at, err)
		}
	}
	return nil
}

// openOutput opens the serial line in raw mode: no byte is changed, added or echoed.
func openOutput() (*os.File, error) {
	f, err := os.OpenFile(outputDevice, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the serial line: %w", err)
	}
	mode, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the mode of the serial line: %w", err), f.Close())
	}
	mode.Iflag, mode.Oflag, mode.Lflag = 0, 0, 0
	mode.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("setting the mode of the serial line: %w", err), f.Close())
	}
	return f, nil
}

// runProgram runs the program to its end and returns its exit code: 128 and the signal's number if a
// signal ended it, as a shell says. Meanwhile it does what only the first process can: it takes the exit
// codes of processes whose parents are gone.
func runProgram(c guestConfig, output *os.File) (int, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting the program: %w", err)
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("waiting for the program: %w", err)
		case pid != cmd.Process.Pid:
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		default:
			return status.ExitStatus(), nil
		}
	}
}
