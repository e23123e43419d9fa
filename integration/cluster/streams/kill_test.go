package streams

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// many is how many Services come while something is measured or killed.
const many = 100

// create makes many Services in front of the backends, in both families.
func (w *world) create(prefix string) {
	w.t.Helper()
	var all sync.WaitGroup
	for from := range 4 {
		all.Go(func() {
			for i := from; i < many; i += 4 {
				if err := w.createOne(fmt.Sprintf("%s-%03d", prefix, i), prefix); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// createOne makes a Service that goes when all with a prefix do.
func (w *world) createOne(name, prefix string) error {
	dual := corev1.IPFamilyPolicyRequireDualStack
	_, err := w.Client.CoreV1().Services("default").Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"many": prefix}},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: &dual, Selector: map[string]string{"app": "backend"},
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(netns.EchoPort)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating Service %s: %w", name, err)
	}
	return nil
}

// drop deletes them, and waits until no machine has a rule for any.
func (w *world) drop(prefix string) {
	w.t.Helper()
	w.MustKubectl(w.t, "delete", "services", "-l", "many="+prefix, "--wait=false")
	w.counts(prefix, 0)
}

// counts waits until each machine's rules name so many of these Services, with all their endpoints.
func (w *world) counts(prefix string, want int) {
	w.t.Helper()
	for _, m := range w.Machines() {
		wait.Until(w.t, fmt.Sprintf("%d Services %s-... are in the rules of %s", want, prefix, m.Name), func() error {
			for _, f := range netns.Families() {
				nat, err := w.nat(m.Name, f)
				if err != nil {
					return err
				}
				if n := endpointsOf(nat, "default/"+prefix+"-"); n != want*len(w.pods) {
					return fmt.Errorf("%s has rules for %d endpoints, want %d", f, n, want*len(w.pods))
				}
			}
			return nil
		})
	}
}

// killOnce waits until the daemon of a machine, another process than before, runs a program that writes
// rules, and kills the daemon then.
func (w *world) killOnce(machine string, before int) (killed int, err error) {
	err = wait.Usual.For(w.t.Context(), func(context.Context) error {
		killed = w.pid(machine, "gridproxy")
		return wait.Check(killed != 0 && killed != before, "gridproxy on %s is process %d, after %d", machine, killed, before)
	})
	if err != nil {
		return 0, err
	}
	// Closer than package wait looks: the program lives for some milliseconds.
	// real time: the program ends between two asks of package wait
	for end := time.Now().Add(waitTimeout); !writes(killed); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			return killed, fmt.Errorf("gridproxy on %s, process %d, was not seen to write rules within %s, while a Service changed", machine, killed, waitTimeout)
		}
	}
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		return killed, fmt.Errorf("killing gridproxy on %s, process %d: %w", machine, killed, err)
	}
	return killed, nil
}

// writes says whether a daemon runs iptables-restore.
func writes(pid int) bool {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	for _, list := range lists {
		children, _ := os.ReadFile(list) // a thread may have ended
		for _, child := range strings.Fields(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.Contains(string(line), "restore") {
				return true
			}
		}
	}
	return false
}

// killInSync kills every machine's daemon twice while it writes rules for many new Services, the second time
// in its first sync, and wants that the rules are whole in the end.
func (w *world) killInSync() {
	w.t.Helper()
	var kills atomic.Int64
	var killers sync.WaitGroup
	for _, m := range w.Machines() {
		killers.Go(func() {
			pid := 0
			for range 2 {
				var err error
				if pid, err = w.killOnce(m.Name, pid); err != nil {
					w.t.Error(err)
					return
				}
				kills.Add(1)
			}
			if err := w.another(m.Name, pid); err != nil {
				w.t.Error(err)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		killers.Wait()
	}()
	w.create("killed")
	w.must(w.createOne("restless", "killed"))
	w.change("restless", over)
	w.note("kill -9 in the middle of a sync: %d daemons were killed while iptables-restore ran", kills.Load())
	w.counts("killed", many)
	w.ready()
	w.sample("killed")
}

// change changes a Service's port again and again, so that daemons have rules to write, until something is over.
func (w *world) change(service string, over <-chan struct{}) {
	w.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for port := 81; ; port ^= 1 {
		patch := fmt.Sprintf(`{"spec": {"ports": [{"port": %d, "targetPort": %d}]}}`, port, netns.EchoPort)
		_, err := w.Client.CoreV1().Services("default").Patch(w.t.Context(), service, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		w.must(err)
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

// sample asks a few of the Services from every machine.
func (w *world) sample(prefix string) {
	w.t.Helper()
	for machine := range w.pods {
		for _, f := range netns.Families() {
			for i := 0; i < many; i += many / 5 {
				way := w.fromPod(machine, fmt.Sprintf("%s-%03d", prefix, i), f)
				if _, err := w.client.Ask(way); err != nil {
					w.t.Errorf("%s: %v", way, err)
				}
			}
		}
	}
}
