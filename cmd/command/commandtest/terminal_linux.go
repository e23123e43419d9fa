package commandtest

import (
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal opens a pseudo-terminal. Give tty to a process; shown closes tty, waits until no
// process has it open, and returns what was written there, with the terminal's own line ends.
func Terminal(t *testing.T) (tty *os.File, shown func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	descriptor := int(master.Fd()) //nolint:gosec // a file descriptor fits
	if err := unix.IoctlSetPointerInt(descriptor, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(descriptor, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	text := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(master) // ends with EIO when the last process has closed the terminal
		text <- string(all)
	}()
	return tty, func() string {
		_ = tty.Close()
		return <-text
	}
}
