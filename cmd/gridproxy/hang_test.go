package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"

	"golang.org/x/sys/unix"
)

// hangingTool puts a wrapper of a program before it in PATH. Once the file hang exists, a run of
// it starts a process that never ends, and writes the number of that process to the file hung.
type hangingTool struct{ path, hang, hung string }

func newHangingTool(t *testing.T, name string) hangingTool {
	t.Helper()
	need.IPTables(t)
	real, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := hangingTool{path: dir + ":" + os.Getenv("PATH"), hang: filepath.Join(dir, "hang"), hung: filepath.Join(dir, "hung")}
	script := fmt.Sprintf("#!/bin/sh\n[ -e %[1]s ] || exec %[2]s \"$@\"\nsh -c 'echo $$ >%[3]s; exec sleep 100000' &\nwait\n", w.hang, real, w.hung)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid := w.pid(); pid > 1 && !w.ended() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	return w
}

func (w hangingTool) setHanging(t *testing.T) {
	t.Helper()
	write(t, w.hang, "")
}

// pid is that of the process that never ends; 0 = none was started.
func (w hangingTool) pid() int {
	b, _ := os.ReadFile(w.hung)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// ended reports whether that process has ended; a zombie has.
func (w hangingTool) ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.pid()))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(after, "Z")
}

// TestSigtermWhileToolHangs: whichever program hangs, SIGTERM ends the daemon, that program and all
// processes that it started.
func TestSigtermWhileToolHangs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, tool string
		ready      bool // the daemon has synced before the tool hangs
		save       bool // the kernel's rules are changed, so that a repair is due
	}{
		{name: "probe at the start", tool: "iptables-nft"},
		{name: "reading at the first sync", tool: "iptables-nft-save"},
		{name: "writing at the first sync", tool: "iptables-nft-restore"},
		{name: "reading for a repair", tool: "iptables-nft-save", ready: true, save: true},
		{name: "writing a change", tool: "iptables-nft-restore", ready: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newHangingTool(t, test.tool)
			manifests := clusterFile(t)
			if !test.ready {
				w.setHanging(t)
			}
			ns := newNamespace(t)
			cmd := gridproxy("run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests="+manifests, "--verify-period=1s")
			cmd.Env = append(cmd.Env, "PATH="+w.path)
			d := startCommand(t, ns, cmd)
			before := ""
			if test.ready {
				d.ready(t)
				before = d.rules(t)
				w.setHanging(t)
				write(t, manifests, cluster("10.0.0.99", "beijing"))
			}
			if test.save {
				within(t, ns, func() error {
					return exec.Command("iptables-nft", "-w", "5", "-t", "nat", "-F", "KUBE-POSTROUTING").Run()
				})
				before = d.rules(t)
			}
			d.until(t, "the tool to hang", func() bool { return w.pid() > 0 })
			begin := time.Now()
			if code := d.stop(t, syscall.SIGTERM); code != command.OK {
				t.Errorf("exit code %d after SIGTERM\n%s", code, d.output)
			}
			t.Logf("ended after %s", time.Since(begin))
			wait.Until(t, "what the tool started has ended with the daemon", func() error {
				return wait.Check(w.ended(), "process %d runs", w.pid())
			})
			if test.ready && !test.save && d.rules(t) != before {
				t.Errorf("rules after the end:\n%s\nbefore:\n%s", d.rules(t), before)
			}
		})
	}
}

// TestLivezWhileToolHangs: /livez fails when a repair hangs although nothing has changed in the
// cluster. A first sync with a long restore gets more time, while /healthz reports that it is late.
func TestLivezWhileToolHangs(t *testing.T) {
	t.Parallel()
	for name, repair := range map[string]bool{"first sync": false, "repair": true} {
		t.Run(name, func(t *testing.T) {
			w := newHangingTool(t, "iptables-nft-restore")
			manifests := clusterFile(t)
			if !repair {
				w.setHanging(t)
			}
			ns := newNamespace(t)
			cmd := gridproxy("run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests="+manifests,
				"--verify-period=1s", "--iptables-sync-period=1s")
			cmd.Env = append(cmd.Env, "PATH="+w.path)
			d := startCommand(t, ns, cmd)
			if repair {
				d.ready(t)
				w.setHanging(t)
				within(t, ns, func() error {
					return exec.Command("iptables-nft", "-w", "5", "-t", "nat", "-F", "KUBE-POSTROUTING").Run()
				})
			}
			d.until(t, "the tool to hang", func() bool { return w.pid() > 0 })
			d.until(t, "/healthz to say so", func() bool { return d.get("/healthz", 10256).code == 503 })
			if repair {
				d.until(t, "/livez to say so", func() bool { return d.get("/livez", 10256).code == 503 })
			} else if a := d.get("/livez", 10256); a.code != 200 {
				t.Errorf("/livez during the first sync: %d %s", a.code, a.body)
			}
		})
	}
}

// TestSigtermWhileStartHangs: a system call that no context ends, here a read that never returns,
// does not keep the process from ending.
func TestSigtermWhileStartHangs(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "kubeconfig")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *os.File, 1)
	go func() {
		f, _ := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the daemon reads
		opened <- f
	}()
	d := start(t, "--node-name=bj-3", "--kubeconfig="+fifo)
	defer wait.Receive(t, "the daemon reads its kubeconfig", opened).Close()
	if code := d.stop(t, syscall.SIGTERM); code != command.Failure || d.logged("did not end within") != 1 {
		t.Errorf("exit code %d after SIGTERM\n%s", code, d.output)
	}
}

// TestHangupIsIgnored: SIGHUP does not end the daemon, which keeps working.
func TestHangupIsIgnored(t *testing.T) {
	manifests := clusterFile(t)
	d := start(t, "--node-name=bj-3", "--manifests="+manifests).ready(t)
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	d.until(t, "the signal to be reported", func() bool { return d.logged("SIGHUP is ignored") == 1 })
	write(t, manifests, cluster("10.0.0.99", "beijing"))
	d.until(t, "the edit to take effect", func() bool { return strings.Contains(d.rules(t), "10.0.0.99:8080") })
	if code := d.stop(t, syscall.SIGTERM); code != command.OK {
		t.Errorf("exit code %d", code)
	}
}
