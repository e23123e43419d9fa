package grids

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// console is where a running command writes.
type console struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write takes a piece of text.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// runningController is a grid-controller that runs.
type runningController struct {
	log   *console
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// start starts grid-controller, which ends with the test at the latest.
func (w *terminal) start(args ...string) *runningController {
	w.Helper()
	r := &runningController{log: &console{}, ended: make(chan struct{})}
	r.cmd = exec.CommandContext(w.Context(), w.binary, args...)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel kills a child when the thread that started it ends
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		started <- err
		if err == nil {
			_ = r.cmd.Wait() // the exit code says what became of it
		}
		close(r.ended)
	}()
	must(w, <-started)
	return r
}

// stop ends it as a rollout does, and returns its exit code.
func (r *runningController) stop(t *testing.T) int {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-r.ended
	return r.cmd.ProcessState.ExitCode()
}

// TestRunWithoutCRDs: B-26, it waits, alive but not ready, asks again and again and writes nothing,
// says once of each half how to install them, and starts when they are there. Its Lease is free
// when it ends.
func TestRunWithoutCRDs(t *testing.T) {
	c := apiserver.ForTest(t, apiserver.Options{})
	w := newTerminal(t, c)
	health := freePort(t)
	count := &nodes.Count{}
	kubeconfig := relayed(t, c, count)
	running := w.start("run", "--kubeconfig", kubeconfig, "--metrics-bind-address=", "--healthz-bind-address="+health)
	log := running.log
	const words = "kubectl apply --server-side -f deploy/crds"
	wait.Until(w, "it says what is missing, and is alive but not ready", func() error {
		return errors.Join(wait.Contains(log.String(), words), answers(health, "/healthz", http.StatusOK), answers(health, "/readyz", http.StatusInternalServerError))
	})
	w.expectOnlyQuestions(count)
	if err := answers(health, "/readyz", http.StatusInternalServerError); err != nil {
		t.Errorf("it is ready without CRDs: %v", err)
	}
	w.call("", "apply", "--server-side", "-f", "../../deploy/crds")
	wait.Until(w, "it is ready", func() error { return answers(health, "/readyz", http.StatusOK) })
	said := map[string]int{} // while the definitions come one by one, what is missing changes
	for line := range strings.Lines(log.String()) {
		if _, what, found := strings.Cut(line, "msg=waiting"); found {
			said[what]++
		}
	}
	for what, n := range said {
		if n != 1 {
			t.Errorf("said %d times: %s", n, what)
		}
	}
	w.node("bj-1", "beijing")
	w.call("", "apply", "--server-side", "-f", stateless)
	wait.Until(w, "the children are there", func() error {
		return wait.Contains(w.call("", "get", "deployments,services", "-o", "name"), "deployment.apps/deploymentgrid-demo-beijing\nservice/kubernetes\nservice/servicegrid-demo-svc")
	})
	if lease := w.lease(c); lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		t.Error("it works without its Lease")
	}
	if code := running.stop(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	if lease := w.lease(c); lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		t.Errorf("the Lease is still held by %s", *lease.Spec.HolderIdentity)
	}
}

// relayed returns a kubeconfig of the admin whose requests are counted.
func relayed(t *testing.T, c *apiserver.Cluster, count *nodes.Count) string {
	t.Helper()
	admin := c.Admin()
	count.Wrap(admin)
	relay, err := c.NewRelay(admin)
	must(t, err)
	t.Cleanup(relay.Close)
	return apiserver.KubeconfigForTest(t, relay.Config())
}

// expectOnlyQuestions waits until a client has asked five times more which resources there are. It
// fails the test if the client has written anything but Leases and Events.
func (w *terminal) expectOnlyQuestions(count *nodes.Count) {
	w.Helper()
	questions := func() int {
		return len(count.Requests(func(r nodes.Request) bool { return r.Resource == "" && r.Verb == "get" }))
	}
	enough := questions() + 5
	wait.Until(w, "it has asked five times more", func() error {
		n := questions()
		return wait.Check(n >= enough, "it has asked %d times, want %d", n, enough)
	})
	writes := count.Requests(func(r nodes.Request) bool { return r.Write() && !strings.HasPrefix(r.Resource, "events") })
	if len(writes) > 0 {
		w.Errorf("it writes:\n%s", nodes.Tally(writes))
	}
}

func (w *terminal) lease(c *apiserver.Cluster) *coordinationv1.Lease {
	w.Helper()
	api := apiserver.ClientForTest(w, c.Admin())
	lease, err := api.CoordinationV1().Leases("kube-system").Get(context.Background(), "grid-controller", metav1.GetOptions{})
	must(w, err)
	return lease
}

func answers(address, path string, code int) error {
	answer, err := http.Get("http://" + address + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return wait.Check(answer.StatusCode == code, "%s answers %s, want %d", path, answer.Status, code)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}
