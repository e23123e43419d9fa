package document

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
)

// Session is a shell that goes on from one command to the next: with its folder, its variables and
// its functions. It ends with the test.
type Session struct {
	t       testing.TB
	cancel  context.CancelFunc
	in      io.Writer
	out     *bufio.Reader
	waiting time.Duration
}

var errEnded = errors.New("the shell has ended")

// said is the line after the output of a command, before its exit code.
const said = "gridproxy-session-said "

// Open starts a shell in the folder. A command that takes longer than waiting ends the session.
func (s Shell) Open(t testing.TB, waiting time.Duration) *Session {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "bash")
	cmd.Dir, cmd.Env = s.Dir, s.environment()
	// What it has started is in its group, and may clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	if err := apiserver.Within(s.Namespace, cmd.Start); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
		_ = writer.CloseWithError(errEnded)
	}()
	t.Cleanup(func() {
		_ = in.Close()
		cancel()
		_ = out.Close()
		<-ended
	})
	return &Session{t: t, cancel: cancel, in: in, out: bufio.NewReader(out), waiting: waiting}
}

// Type runs a command, and returns what it wrote to standard output and standard error, and its
// exit code. The command has no input but its own lines.
func (s *Session) Type(command string) (output string, code int) {
	s.t.Helper()
	late := time.AfterFunc(s.waiting, s.cancel)
	defer late.Stop()
	if _, err := fmt.Fprintf(s.in, "{\n%s\n} </dev/null\nprintf '\\n%s%%d\\n' $?\n", command, said); err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
	var all strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s: not done within %s, or it ended the shell: %v\n%s%s", command, s.waiting, err, &all, line)
		}
		if number, found := strings.CutPrefix(strings.TrimSpace(line), strings.TrimSpace(said)+" "); found {
			if code, err = strconv.Atoi(number); err != nil {
				s.t.Fatalf("%s: reading its exit code: %v", command, err)
			}
			return strings.TrimSuffix(all.String(), "\n"), code
		}
		all.WriteString(line)
	}
}
