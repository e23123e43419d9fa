package machines

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// asVictim has this test program start a cluster and wait to be killed. It also ends when its
// standard input does: so that it does not outlive the test, however that ends.
const asVictim = "GRIDPROXY_MACHINES_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asVictim); dir != "" {
		os.Exit(victim(dir))
	}
	os.Exit(m.Run())
}

func victim(dir string) int {
	ended := make(chan int, 1)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end too
		ended <- 0
	}()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), apiserver.StartTimeout)
		defer cancel()
		if _, err := Start(ctx, Options{Dir: dir, Machines: Manual()[:1]}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			ended <- 1
			return
		}
		fmt.Println("ready")
	}()
	return <-ended
}

// TestKilled: nothing is left of a cluster whose program was killed.
func TestKilled(t *testing.T) {
	need.Cluster(t)
	// What has to be built first has no deadline but the test's own.
	for _, ensure := range []func(context.Context, io.Writer) (apiserver.Tools, error){
		apiserver.Ensure, apiserver.EnsureNodeRuntime,
	} {
		if _, err := ensure(t.Context(), os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), asVictim+"="+dir)
	child.Stderr = os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the tests' own signals are not for it
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.StdinPipe(); err != nil { // open for as long as this program lives
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the cluster did not start: %q", lines.Text())
	}
	if left := traces(t, dir, child.Process.Pid); len(left) < 10 {
		t.Errorf("this test sees too little of a running cluster: %q", left)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	wait.Until(t, "nothing is left", func() error {
		left := traces(t, dir, child.Process.Pid)
		return wait.Check(len(left) == 0, "left are %q", left)
	})
}

// traces are the processes that use a folder, the control groups named after a program, and the folder of the
// machines.
func traces(t *testing.T, dir string, pid int) (all []string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range commands {
		command, err := os.ReadFile(file)
		own := file == fmt.Sprintf("/proc/%d/cmdline", pid)
		if err == nil && !own && strings.Contains(string(command), dir) {
			all = append(all, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	all = append(all, netns.ControlGroups("gridproxy-"+strconv.Itoa(pid)+"-")...)
	if _, err := os.Stat(filepath.Join(dir, "machines")); err == nil {
		all = append(all, "machines")
	}
	return all
}
