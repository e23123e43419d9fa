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

	"gridproxy/integration/cluster"
	"gridproxy/integration/lab"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// many is how many Services come while something is measured or killed.
const many = 100

// create makes many Services in front of the backends, in both families.
func (w *world) create(prefix string) {
	w.t.Helper()
	dual := corev1.IPFamilyPolicyRequireDualStack
	var all sync.WaitGroup
	for from := range 4 {
		all.Go(func() {
			for i := from; i < many; i += 4 {
				s := &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%03d", prefix, i), Labels: map[string]string{"many": prefix}},
					Spec: corev1.ServiceSpec{
						IPFamilyPolicy: &dual, Selector: map[string]string{"app": "backend"},
						Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(lab.EchoPort)}},
					},
				}
				if _, err := w.Client.CoreV1().Services("default").Create(w.t.Context(), s, metav1.CreateOptions{}); err != nil {
					w.t.Errorf("creating Service %s: %v", s.Name, err)
				}
			}
		})
	}
	all.Wait()
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
		cluster.Eventually(w.t, fmt.Sprintf("%d Services %s-... are in the rules of %s", want, prefix, m.Name), func() error {
			for _, f := range lab.Families() {
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
// rules, and kills the daemon then. It returns whether that was so: when nothing is written within the
// timeout it kills the daemon all the same.
func (w *world) killOnce(machine string, before int, timeout time.Duration) (killed int, hit bool, err error) {
	ctx, cancel := w.within()
	defer cancel()
	err = lab.Poll(ctx, func(context.Context) error {
		if killed = w.pid(machine, "gridproxy"); killed == 0 || killed == before {
			return fmt.Errorf("gridproxy on %s is process %d, after %d", machine, killed, before)
		}
		return nil
	})
	if err != nil {
		return 0, false, err
	}
	for end := time.Now().Add(timeout); !hit && time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		hit = writes(killed)
	}
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		return killed, hit, fmt.Errorf("killing gridproxy on %s, process %d: %w", machine, killed, err)
	}
	return killed, hit, nil
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
	var killed, hits atomic.Int64
	var killers sync.WaitGroup
	for _, m := range w.Machines() {
		killers.Go(func() {
			pid := 0
			for range 2 {
				var hit bool
				var err error
				if pid, hit, err = w.killOnce(m.Name, pid, 15*time.Second); err != nil {
					w.t.Error(err)
					return
				}
				if killed.Add(1); hit {
					hits.Add(1)
				}
			}
			if err := w.another(m.Name, pid); err != nil {
				w.t.Error(err)
			}
		})
	}
	w.create("killed")
	killers.Wait()
	w.note("kill -9 in the middle of a sync: %d of %d daemons were killed while iptables-restore ran", hits.Load(), killed.Load())
	if hits.Load() < killed.Load()/2 {
		w.t.Errorf("of %d killed daemons only %d were in the middle of a sync", killed.Load(), hits.Load())
	}
	w.counts("killed", many)
	w.ready()
	w.sample("killed")
}

// sample asks a few of the Services from every machine.
func (w *world) sample(prefix string) {
	w.t.Helper()
	for machine := range w.pods {
		for _, f := range lab.Families() {
			for i := 0; i < many; i += many / 5 {
				way := w.fromPod(machine, fmt.Sprintf("%s-%03d", prefix, i), f)
				if _, err := w.client.Ask(way); err != nil {
					w.t.Errorf("%s: %v", way, err)
				}
			}
		}
	}
}
