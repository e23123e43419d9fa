package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/status"
)

// newStatusSocket is a path for a socket, in a folder that does not exist yet. Paths of sockets are
// short, so it is not below t.TempDir, whose path has the name of the test.
func newStatusSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "status")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "status.sock")
}

// statusOf runs the command. The Status is zero if standard output has none.
func statusOf(t *testing.T, socket string) (s status.Status, code int, problems string) {
	t.Helper()
	code, text, problems := answerOf(t, "status", "--status-socket="+socket, "-o=json")
	if text != "" {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	return s, code, problems
}

// untilStatus waits for an answer.
func (p *process) untilStatus(t *testing.T, socket, what string, ok func(s status.Status, code int, problems string) bool) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("last answer: %s", last)
		}
	}()
	p.until(t, what, func() bool {
		s, code, problems := statusOf(t, socket)
		last = fmt.Sprintf("code %d\n%s\n%+v", code, problems, s)
		return ok(s, code, problems)
	})
}

// malformedService is the manifest of a Service whose annotation cannot be parsed.
const malformedService = `
---
apiVersion: v1
kind: Service
metadata: {name: malformed, annotations: {topologyKeys: 'location'}}
spec: {clusterIP: 172.16.33.232, ports: [{port: 80}]}`

// TestStatus follows one daemon from its start to its end.
func TestStatus(t *testing.T) {
	t.Parallel()
	socket := newStatusSocket(t)
	manifests := filepath.Join(t.TempDir(), "cluster.yaml")
	const rest = malformedService + `
---
apiVersion: v1
kind: Service
metadata: {name: elsewhere, annotations: {topologyKeys: '["location"]'}}
spec: {clusterIP: 172.16.33.233, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: b, labels: {kubernetes.io/service-name: elsewhere}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [{addresses: [10.0.1.9], nodeName: gz-3}]
---
apiVersion: v1
kind: Service
metadata: {name: open}
spec: {clusterIP: 172.16.33.234, ports: [{port: 80}]}
`
	write(t, manifests, cluster("10.0.0.70", "beijing")+rest)
	args := []string{"--node-name=bj-3", "--manifests=" + manifests, "--cluster-cidr=10.0.0.0/16", "--verify-period=1s", "--iptables-sync-period=1s", "--status-socket=" + socket}
	d := start(t, args...)
	d.untilStatus(t, socket, "the daemon to be healthy", func(s status.Status, code int, problems string) bool {
		return s.Healthy && code == 0 && problems == "" && s.LastVerification != nil
	})
	s, _, _ := statusOf(t, socket)
	// A malformed annotation closes a Service that had no valid one, so malformed is refused too.
	if want := (status.Services{All: 4, Open: 1, Closed: 3, Refused: 2, Malformed: 1}); s.Services != want {
		t.Errorf("Services %+v, want %+v", s.Services, want)
	}
	if d := s.Daemon; s.Node.Name != "bj-3" || !s.Node.Known || d.Mode != "iptables" || d.Variant != "nft" || d.Source != status.SourceManifests || d.Version == "" {
		t.Errorf("daemon %+v of node %+v", d, s.Node)
	}
	if len(s.Families) != 2 || s.Families[0].State != "synced" || s.LastSync.Error != "" || s.Knowledge.Snapshot.IsZero() {
		t.Errorf("families %+v, last sync %+v, knowledge %+v", s.Families, s.LastSync, s.Knowledge)
	}
	if info, err := os.Lstat(socket); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("mode of the socket: %v %v", info.Mode(), err)
	}
	table, err := gridproxy("status", "--status-socket="+socket).Output()
	if err != nil || !strings.Contains(string(table), "Healthy:            yes\n") || !strings.Contains(string(table), "iptables (iptables-nft)") {
		t.Errorf("table: %v\n%s", err, table)
	}

	within(t, d.ns, func() error {
		return exec.Command("iptables-nft", "-w", "5", "-t", "nat", "-F", "KUBE-POSTROUTING").Run()
	})
	d.untilStatus(t, socket, "the repair to be counted", func(s status.Status, _ int, _ string) bool {
		return s.Drift.Repaired > 0 && !s.Drift.Last.IsZero()
	})
	write(t, manifests, "half: [")
	d.untilStatus(t, socket, "unreadable manifests to be a problem", func(s status.Status, code int, problems string) bool {
		return code == command.Found && !s.Healthy && strings.Contains(problems, "error: it has not been possible to read the manifests for ")
	})
	write(t, manifests, cluster("10.0.0.70", "beijing"))
	d.untilStatus(t, socket, "the daemon to be healthy again", func(s status.Status, code int, _ string) bool { return s.Healthy && code == 0 })

	if code := d.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	if _, code, problems := statusOf(t, socket); code != command.Found || !strings.Contains(problems, "error: no daemon: there is no socket "+socket) {
		t.Errorf("after the end: code %d\n%s", code, problems)
	}
}

// TestStatusNamesCauses: status names Services that are refused here, malformed ones, and a
// health-check port that another program holds, each with the next command.
func TestStatusNamesCauses(t *testing.T) {
	t.Parallel()
	socket := newStatusSocket(t)
	manifests := tempFile(t, cluster("10.0.0.70", "beijing")+malformedService+`
---
apiVersion: v1
kind: Service
metadata: {name: balanced}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 31234, clusterIP: 172.16.33.233, ports: [{port: 80, nodePort: 31235}]}
`)
	ns := newNamespace(t)
	within(t, ns, func() error {
		held, err := net.Listen("tcp4", "0.0.0.0:31234")
		if err == nil {
			t.Cleanup(func() { _ = held.Close() })
		}
		return err
	})
	d := startIn(t, ns, "--node-name=bj-3", "--manifests="+manifests, "--cluster-cidr=10.0.0.0/16", "--status-socket="+socket)
	d.untilStatus(t, socket, "the port that is held", func(s status.Status, code int, _ string) bool { return code == 0 && s.UnopenedPorts == 1 })
	table, err := gridproxy("status", "--status-socket="+socket).Output()
	for _, line := range []string{
		"default/malformed; gridproxy explain default/malformed says why",
		"default/balanced at 0.0.0.0:31234: address already in use; ss -Hltnp 'sport = :31234' on the Node names the program",
	} {
		if !strings.Contains(string(table), " "+line+"\n") {
			t.Errorf("there is no line %q, %v:\n%s", line, err, table)
		}
	}
}

// TestStatusSocketIsNotTaken: a second daemon leaves the socket of the first one alone, and works
// without. A socket that is left over is replaced.
func TestStatusSocketIsNotTaken(t *testing.T) {
	t.Parallel()
	socket := newStatusSocket(t)
	manifests := clusterFile(t)
	args := []string{"--manifests=" + manifests, "--cluster-cidr=10.0.0.0/16", "--status-socket=" + socket}
	first := start(t, append(args, "--node-name=bj-3")...)
	first.untilStatus(t, socket, "the first daemon", func(s status.Status, _ int, _ string) bool { return s.Node.Name == "bj-3" })
	second := start(t, append(args, "--node-name=bj-1")...)
	const taken = "another process listens there, such as another gridproxy run; gridproxy status cannot ask this daemon; make the path available or change --status-socket"
	second.until(t, "the failure to be logged, and the rules", func() bool {
		return second.logged(taken) == 1 && second.get("/readyz", 10256).code == 200
	})
	if s, code, problems := statusOf(t, socket); s.Node.Name != "bj-3" {
		t.Errorf("the socket is of node %q, code %d: %s", s.Node.Name, code, problems)
	}
	first.stop(t, syscall.SIGKILL) // so that it leaves its socket
	second.untilStatus(t, socket, "the second daemon to replace the socket that was left", func(s status.Status, _ int, _ string) bool { return s.Node.Name == "bj-1" })
	second.stop(t, syscall.SIGKILL)
	if _, code, problems := statusOf(t, socket); code != command.Found || !strings.Contains(problems, "error: no daemon: the gridproxy run that made "+socket+" has ended") {
		t.Errorf("of a daemon that was killed: code %d\n%s", code, problems)
	}
}

// TestStatusWhileSyncHangs: the daemon answers while a sync hangs, and reports it.
func TestStatusWhileSyncHangs(t *testing.T) {
	t.Parallel()
	w := newHangingTool(t, "iptables-nft-restore")
	socket := newStatusSocket(t)
	manifests := clusterFile(t)
	cmd := gridproxy("run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests="+manifests,
		"--verify-period=1s", "--iptables-sync-period=1s", "--status-socket="+socket)
	cmd.Env = append(cmd.Env, "PATH="+w.path)
	d := startCommand(t, newNamespace(t), cmd)
	d.untilStatus(t, socket, "the daemon to be healthy", func(s status.Status, _ int, _ string) bool { return s.Healthy })
	w.setHanging(t)
	write(t, manifests, cluster("10.0.0.99", "beijing"))
	d.untilStatus(t, socket, "the hanging sync to be a problem", func(s status.Status, code int, problems string) bool {
		return w.pid() > 0 && code == command.Found && !s.Healthy && !s.Sync.Live && s.Sync.Hangs && strings.Contains(problems, "error: the sync in progress hangs: its last step was ")
	})
	if d.get("/livez", 10256).code != 503 {
		t.Error("/livez does not say so")
	}
}

// TestStatusOfHangingProcess: a process that accepts no connection is reported after a deadline.
func TestStatusOfHangingProcess(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(filepath.Dir(filepath.Dir(newStatusSocket(t))), "status.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if _, code, problems := statusOf(t, socket); code != command.Found || !strings.Contains(problems, "error: no answer: the process that listens at "+socket+" hangs") {
		t.Errorf("code %d\n%s", code, problems)
	}
}

// TestStatusWithoutSocket: a socket that cannot be made is logged once, and the daemon works. With
// an empty path, or with --init-only, no socket is made.
func TestStatusWithoutSocket(t *testing.T) {
	t.Parallel()
	socket := newStatusSocket(t)
	manifests := clusterFile(t)
	if err := os.WriteFile(filepath.Dir(socket), nil, 0o600); err != nil { // where its folder should be
		t.Fatal(err)
	}
	d := start(t, "--node-name=bj-3", "--manifests="+manifests, "--status-socket="+socket)
	d.until(t, "the failure to be logged, and the rules", func() bool {
		return d.logged("starting the status server: ") == 1 && d.get("/readyz", 10256).code == 200
	})
	if err := os.Remove(filepath.Dir(socket)); err != nil {
		t.Fatal(err)
	}
	init := startIn(t, d.ns, "--init-only", "--node-name=bj-3", "--manifests="+manifests, "--status-socket="+socket+"2")
	if code := init.wait(t); code != 0 {
		t.Errorf("--init-only: code %d", code)
	}
	if _, err := os.Lstat(socket + "2"); err == nil {
		t.Error("--init-only has made a socket")
	}
	d.untilStatus(t, socket, "the socket to be made when that is possible", func(s status.Status, _ int, _ string) bool { return s.Node.Name == "bj-3" })
}

// TestStatusWithoutAPIServer: before the API server has answered once, the answer says what is
// missing and why.
func TestStatusWithoutAPIServer(t *testing.T) {
	socket := newStatusSocket(t)
	d := start(t, "--node-name=bj-3", "--master=http://127.0.0.1:1", "--status-socket="+socket)
	d.untilStatus(t, socket, "the missing API server to be a problem", func(s status.Status, code int, problems string) bool {
		return code == command.Found && s.Daemon.Source == status.SourceAPIServer && !s.Sync.Ready && s.LastSync == nil &&
			strings.Contains(problems, "Services, EndpointSlices and Nodes have not all been read from the API server yet\n") &&
			strings.Contains(problems, "error: it has not been possible to read the API server for ") && strings.Contains(problems, "connection refused")
	})
}
