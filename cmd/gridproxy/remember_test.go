package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/gridproxy/status"
	"gridproxy/integration/env/need"

	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	stateFromDisk = "gridproxy_state_from_disk"
	stateWrites   = "gridproxy_state_writes_total"
)

// savingNode is a node whose daemons save to one folder.
type savingNode struct {
	t      *testing.T
	dir    string
	socket string
	flags  []string
}

func newSavingNode(t *testing.T, address string) savingNode {
	t.Helper()
	need.IPTables(t)
	dir, socket := filepath.Join(t.TempDir(), "state"), newStatusSocket(t)
	return savingNode{t: t, dir: dir, socket: socket, flags: []string{
		"--node-name=bj-3", "--kubeconfig=" + kubeconfigOf(t, address), "--verify-period=1s", "--iptables-sync-period=1s", "--state-dir=" + dir, "--status-socket=" + socket,
	}}
}

// start starts a daemon on a machine.
func (n savingNode) start(machine netns.NsHandle) *process { return startIn(n.t, machine, n.flags...) }

// prepare runs --init-only with the flags of the daemons, and returns its exit code.
func (n savingNode) prepare(machine netns.NsHandle) int {
	return startIn(n.t, machine, append([]string{"--init-only"}, n.flags...)...).wait(n.t)
}

// closedTo is a Service closed by the label location.
func closedTo(name, address, keys string) *corev1.Service {
	svc := clusterIP(name, address, 80)
	svc.UID, svc.Annotations = "uid", map[string]string{"topologyKeys": keys}
	return svc
}

// TestSavedState follows a node through a reboot and a restart without API server, until that is
// back with changes. A machine after a reboot is another network namespace.
func TestSavedState(t *testing.T) {
	t.Parallel()
	machine := newNamespace(t)
	api, address, closeAPI := serveIn(t, machine, "127.0.0.1:0")
	n := newSavingNode(t, address)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-3", Labels: map[string]string{"location": "beijing"}}}
	here := readyAt("web", "10.0.0.1")
	here.Endpoints[0].NodeName = new("bj-3")
	put(t, api, clusterIP("kubernetes", "10.96.0.1", 443), readyAt("kubernetes", "192.0.2.1"), closedTo("web", "10.96.0.2", `["location"]`), here, node)
	serves := func(d *process) func() bool {
		return func() bool { return strings.Contains(d.rules(t), "10.0.0.1:8080") }
	}

	d := n.start(machine)
	d.until(t, "the rules of web", serves(d))
	d.until(t, "the state to be saved", func() bool { return d.metric(t, stateWrites, 10249) == 1 })
	put(t, api, readyAt("more", "10.0.0.7"), clusterIP("more", "10.96.0.7", 80))
	d.until(t, "the rules of more", func() bool { return strings.Contains(d.rules(t), "10.0.0.7:8080") })
	d.stop(t, syscall.SIGTERM) // which saves what is not saved yet
	closeAPI()

	rebooted := newNamespace(t)
	d = n.start(rebooted)
	d.until(t, "the rules of web after a reboot", serves(d))
	if rules := d.rules(t); !strings.Contains(rules, "10.0.0.7:8080") {
		t.Errorf("the last change is lost:\n%s", rules)
	}
	d.ready(t)
	if body := d.get("/readyz?verbose", 10256).body; !strings.HasPrefix(body, "ok\nin force: the state saved on disk at ") {
		t.Errorf("/readyz?verbose: %s", body)
	}
	if got := d.metric(t, stateFromDisk, 10249); got != 1 {
		t.Errorf("%s is %v", stateFromDisk, got)
	}
	d.untilStatus(t, n.socket, "the saved state to be named", func(s status.Status, _ int, problems string) bool {
		return !s.Knowledge.Saved.IsZero() && strings.Contains(problems, "it has not been possible to read the API server for ")
	})
	d.stop(t, syscall.SIGTERM)

	d = n.start(rebooted) // the rules are there: the API server gets its time
	d.until(t, "the saved state to be used after a while", func() bool { return d.logged("the saved state is in force until then") == 1 })
	if !serves(d)() {
		t.Errorf("rules after a restart:\n%s", d.rules(t))
	}
	api, _, _ = serveIn(t, rebooted, address)
	moved := readyAt("web", "10.0.0.2")
	moved.Endpoints[0].NodeName = new("bj-3")
	put(t, api, clusterIP("kubernetes", "10.96.0.1", 443), readyAt("kubernetes", "192.0.2.1"), closedTo("web", "10.96.0.2", "malformed"), moved, node)
	d.until(t, "the changes that were made meanwhile", func() bool {
		rules := d.rules(t)
		return strings.Contains(rules, "10.0.0.2:8080") && !strings.Contains(rules, "10.0.0.1:8080") && !strings.Contains(rules, "10.0.0.7:8080")
	})
	if got := d.metric(t, stateFromDisk, 10249); got != 0 {
		t.Errorf("%s is %v when the API server is back", stateFromDisk, got)
	}
	d.untilStatus(t, n.socket, "the daemon to be healthy", func(s status.Status, code int, _ string) bool {
		return s.Healthy && code == 0 && s.Knowledge.Saved.IsZero() && s.Services.Malformed == 1 && s.Services.Refused == 0
	})
}

// TestWaveAfterReboot: the API server says of a site that was cut off that none of its endpoints is
// ready. They are used for --reconnect-grace, unless they are deleted.
func TestWaveAfterReboot(t *testing.T) {
	t.Parallel()
	for grace, held := range map[string]float64{"1m": 1, "0": -1} {
		t.Run(grace, func(t *testing.T) {
			machine := newNamespace(t)
			api, address, closeAPI := serveIn(t, machine, "127.0.0.1:0")
			n := newSavingNode(t, address)
			n.flags = append(n.flags, "--reconnect-grace="+grace)
			cluster := []need.FakeObject{
				clusterIP("kubernetes", "10.96.0.1", 443), readyAt("kubernetes", "192.0.2.1"), clusterIP("web", "10.96.0.2", 80),
				&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-3"}},
			}
			put(t, api, append(cluster, readyAt("web", "10.0.0.1"))...)
			d := n.start(machine)
			serves := func() bool { return strings.Contains(d.rules(t), "10.0.0.1:8080") }
			d.until(t, "the rules of web", serves)
			d.stop(t, syscall.SIGTERM)
			closeAPI()

			rebooted := newNamespace(t)
			d = n.start(rebooted)
			d.until(t, "the rules of web after a reboot", serves)
			api, _, _ = serveIn(t, rebooted, address)
			down := readyAt("web", "10.0.0.1")
			down.Endpoints[0].Conditions.Ready = new(false)
			put(t, api, append(cluster, down)...)
			d.until(t, "the API server to be read", func() bool { return d.metric(t, stateFromDisk, 10249) == 0 })
			d.until(t, "the endpoint to be held or not", func() bool { return serves() == (held > 0) })
			if got := d.metric(t, "gridproxy_held_endpoints", 10249); got != held {
				t.Errorf("%v endpoints are held, want %v", got, held)
			}
			out := output(t, rebooted, "", append([]string{os.Args[0], "explain", "web"}, n.flags...)...)
			if strings.Contains(out, "used although not ready, until ") != (held > 0) {
				t.Errorf("explain:\n%s", out)
			}
			remove(t, api, down)
			d.until(t, "a deleted endpoint to go", func() bool { return !serves() })
		})
	}
}

// TestStartWithoutKubeconfig: what names the API server is missing after a reboot, and comes later.
// The saved state is in force until then; without one the start fails at once.
func TestStartWithoutKubeconfig(t *testing.T) {
	t.Parallel()
	machine := newNamespace(t)
	api, address, closeAPI := serveIn(t, machine, "127.0.0.1:0")
	n := newSavingNode(t, address)
	put(t, api, clusterIP("kubernetes", "10.96.0.1", 443), readyAt("kubernetes", "192.0.2.1"), clusterIP("web", "10.96.0.2", 80), readyAt("web", "10.0.0.1"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-3"}})
	serves := func(d *process, address string) func() bool {
		return func() bool { return strings.Contains(d.rules(t), address+":8080") }
	}
	d := n.start(machine)
	d.until(t, "the rules of web", serves(d, "10.0.0.1"))
	d.stop(t, syscall.SIGTERM)
	closeAPI()
	kubeconfig := strings.TrimPrefix(n.flags[1], "--kubeconfig=")
	if err := os.Rename(kubeconfig, kubeconfig+".gone"); err != nil {
		t.Fatal(err)
	}

	rebooted := newNamespace(t)
	if code := n.prepare(rebooted); code != 0 {
		t.Errorf("--init-only: code %d where the daemon starts from disk", code)
	}
	d = n.start(rebooted)
	d.until(t, "the rules of web after a reboot", serves(d, "10.0.0.1"))
	d.ready(t)
	d.untilStatus(t, n.socket, "the missing file to be named", func(s status.Status, _ int, problems string) bool {
		return strings.Contains(problems, "it has not been possible to read the API server for ") && strings.Contains(problems, kubeconfig)
	})
	if got := d.logged("a file of the connection is missing or wrong"); got != 1 {
		t.Errorf("the missing file is logged %d times", got)
	}
	api, _, _ = serveIn(t, rebooted, address)
	put(t, api, clusterIP("kubernetes", "10.96.0.1", 443), readyAt("kubernetes", "192.0.2.1"), clusterIP("web", "10.96.0.2", 80), readyAt("web", "10.0.0.2"),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-3"}})
	if err := os.Rename(kubeconfig+".gone", kubeconfig); err != nil {
		t.Fatal(err)
	}
	d.until(t, "the change that was made meanwhile", serves(d, "10.0.0.2"))
	d.untilStatus(t, n.socket, "the daemon to be healthy", func(s status.Status, code int, _ string) bool { return s.Healthy && code == 0 })
	bad := readyAt("bad", "10.0.0.9") // its Node sends the Event
	bad.Endpoints[0].NodeName = new("bj-3")
	put(t, api, bad, closedTo("bad", "10.96.0.9", "malformed"))
	d.until(t, "an Event", func() bool { return api.Events() > 0 })
	if got := d.metric(t, stateFromDisk, 10249); got != 0 {
		t.Errorf("%s is %v when the API server is read", stateFromDisk, got)
	}
	d.stop(t, syscall.SIGTERM)

	if err := errors.Join(os.RemoveAll(n.dir), os.Remove(kubeconfig)); err != nil {
		t.Fatal(err)
	}
	for what, code := range map[string]int{"run": n.start(newNamespace(t)).wait(t), "--init-only": n.prepare(newNamespace(t))} {
		if code != 3 {
			t.Errorf("%s without kubeconfig and saved state: code %d, want 3", what, code)
		}
	}
}

// TestNoSavedState: without a saved state, or with one that cannot be read, a machine without rules
// waits for the API server.
func TestNoSavedState(t *testing.T) {
	n := newSavingNode(t, "127.0.0.1:1")
	d := n.start(newNamespace(t))
	d.until(t, "the API server to be missed", func() bool { return d.logged("the API server does not answer") > 0 })
	d.until(t, "/readyz to say 503", func() bool { return d.get("/readyz", 10256).code == 503 })
	d.stop(t, syscall.SIGTERM)
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(n.dir, "state"), "GRIDSTAT, and nothing else that is right, in more than fifty-six bytes")
	d = n.start(newNamespace(t))
	d.until(t, "the damage to be logged", func() bool { return d.logged("the file is damaged: its checksum is wrong; it is now "+n.dir) == 1 })
}
