package node

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
)

// askedNode is a node with a daemon, and the commands that an operator asks when something is
// wrong.
type askedNode struct {
	*operatedNode
	socket string // of gridproxy status
	plugin string // the program kubectl-grid
}

func newAskedNode(t *testing.T) *askedNode {
	t.Helper()
	w := &askedNode{operatedNode: newOperatedNode(t)}
	dir := t.TempDir()
	w.plugin = program.ForTest(t, program.KubectlGrid)
	w.socket = filepath.Join(dir, "status.sock")
	w.serves()
	return w
}

// serves starts the daemon with short periods, so that its limits are short too.
func (w *askedNode) serves() {
	w.t.Helper()
	w.start("--status-socket="+w.socket, "--iptables-sync-period=1s", "--verify-period=1s")
}

// ask runs a program on the node. The answer is what it prints, then its exit code.
func (w *askedNode) ask(program string, args ...string) (answer string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx, program, args...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := w.node.Do(cmd.Run)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("%sexit code %d\n", both.String(), cmd.ProcessState.ExitCode())
}

func (w *askedNode) status() string { return w.ask(w.binary, "status", "--status-socket="+w.socket) }

func (w *askedNode) matrix() string {
	return w.ask(w.binary, "matrix", "web", "--kubeconfig="+w.Kubeconfig())
}

// grid is the answer of kubectl grid status about this Node.
func (w *askedNode) grid() string {
	return w.ask(w.plugin, "status", here, "--namespace=default", "--timeout=1s", "--kubeconfig="+w.Kubeconfig())
}

// says waits until an answer has all these texts.
func (w *askedNode) says(command func() string, texts ...string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("an answer has %q", texts), func() error { return wait.Contains(command(), texts...) })
}

// well waits until all three commands find nothing wrong.
func (w *askedNode) well() {
	w.t.Helper()
	w.says(w.status, "Healthy:            yes\n", "2: 1 open, 1 closed\n", "Refused here:       0 ", "Malformed:          0 ", "exit code 0\n")
	w.says(w.matrix, "default/web  location   beijing  guangzhou\n", "exit code 0\n")
	w.says(w.grid, here+"  beijing  healthy ", "exit code 0\n")
}

// TestFaultsAreNamed breaks one thing at a time. gridproxy status, gridproxy matrix and kubectl
// grid status each say what they can know of it, and find nothing wrong when it is repaired.
func TestFaultsAreNamed(t *testing.T) {
	w := newAskedNode(t)
	w.addService("web", "10.96.0.10", "bj-3", "gz-2")
	for _, fault := range []struct {
		name string
		run  func(*testing.T, *askedNode)
	}{
		{"rule altered", testRuleAltered}, {"unit empty", testUnitEmpty}, {"annotation malformed", testAnnotationMalformed},
		{"sync hanging", testSyncHanging}, {"API server away", testAPIServerAway}, {"daemon stopped", testDaemonStopped},
	} {
		w.well()
		t.Run(fault.name, func(t *testing.T) {
			step := *w
			step.operatedNode = w.in(t)
			fault.run(t, &step)
		})
	}
	w.well()
}

func testRuleAltered(t *testing.T, w *askedNode) {
	w.says(w.status, "Repaired:           0 chains since the start\n")
	if _, err := w.node.Run(w.ctx, nil, "iptables-nft", "-w", "5", "-t", "nat", "-F", "KUBE-POSTROUTING"); err != nil {
		t.Fatal(err)
	}
	w.says(w.status, "Repaired:           1 chains since the start, last ")
}

// A closed Service without endpoints works as it should, so nothing is unhealthy.
func testUnitEmpty(_ *testing.T, w *askedNode) {
	w.serve("web", "gz-2")
	w.says(w.status, "Refused here:       1 closed without an endpoint that this node may use\n", "exit code 0\n")
	w.says(w.matrix, "default/web  location   refused  guangzhou\n")
	w.serve("web", "bj-3", "gz-2")
}

func testAnnotationMalformed(_ *testing.T, w *askedNode) {
	w.annotate("web", "location")
	w.says(w.status, "Malformed:          1 with topology annotations that cannot be read\n")
	w.says(w.matrix, "default/web  own node (malformed) ")
	w.annotate("web", `["location"]`)
}

func testSyncHanging(t *testing.T, w *askedNode) {
	end, err := w.refusal.Hang()
	must(w.t, err)
	w.serve("web", "gz-2")
	w.says(w.status, "Healthy:            no\n", "error: the sync in progress hangs: its last step was ", "exit code 1\n")
	w.says(w.grid, here+"  beijing  unhealthy ", "error: Node "+here+": ", "exit code 1\n")
	if err := w.wantRule("10.0.9.1:8080", true); err != nil {
		t.Errorf("the rules in force do not stay: %v", err)
	}
	must(w.t, end())
	w.serve("web", "bj-3", "gz-2")
}

func testAPIServerAway(_ *testing.T, w *askedNode) {
	w.API.Stop()
	w.says(w.status, "Healthy:            no\n", "error: it has not been possible to read the API server for ", "the rules in force stay", "exit code 1\n")
	for _, command := range []func() string{w.matrix, w.grid} {
		w.says(command, "error: ", "connection refused", "exit code 3\n")
	}
	must(w.t, w.API.Start(w.ctx))
}

func testDaemonStopped(_ *testing.T, w *askedNode) {
	must(w.t, syscall.Kill(w.daemon.PID(), syscall.SIGSTOP))
	w.says(w.status, "error: no answer: the process that listens at "+w.socket+" hangs", "exit code 1\n")
	w.says(w.grid, here+"  beijing  unknown ", "error: Node "+here+": the daemon is unknown: no answer within 1s", "exit code 1\n")
	must(w.t, syscall.Kill(w.daemon.PID(), syscall.SIGCONT))
	w.well()
	must(w.t, w.daemon.Stop(w.ctx))
	w.says(w.status, "error: no daemon: there is no socket "+w.socket, "exit code 1\n")
	w.says(w.grid, here+"  beijing  unknown ", "exit code 1\n")
	w.serves()
}
