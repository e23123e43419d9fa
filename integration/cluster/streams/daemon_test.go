package streams

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startKubeProxy starts kube-proxy on every machine and waits until its rules lead to the Services.
func (w *world) startKubeProxy() {
	w.t.Helper()
	w.Apply(w.t, w.kubeProxy)
	w.MustKubectl(w.t, "-n", "kube-system", "rollout", "status", "daemonset/kube-proxy", "--timeout", waitTimeout.String())
}

// ruled waits until Services are in the rules of every machine, of all their families.
func (w *world) ruled(services ...string) {
	w.t.Helper()
	for _, name := range services {
		families := w.familiesOf(name)
		for _, m := range w.Machines() {
			wait.Until(w.t, "Service "+name+" is in the rules of "+m.Name, func() error {
				for _, f := range families {
					nat, err := w.nat(m.Name, f)
					if err != nil {
						return err
					}
					if !strings.Contains(nat, "default/"+name) {
						return fmt.Errorf("%s has no rule for it", f)
					}
				}
				return nil
			})
		}
	}
}

// takeOver removes kube-proxy, leaves its rules, and installs gridproxy on all machines at once.
func (w *world) takeOver() {
	w.t.Helper()
	w.MustKubectl(w.t, "-n", "kube-system", "delete", "daemonset", "kube-proxy")
	w.gone("kube-system", "k8s-app=kube-proxy")
	begin := time.Now()
	w.shell.Run(w.t, "helm install gridproxy deploy/charts/gridproxy --namespace gridproxy --create-namespace --set-json '"+
		strings.Join(w.Values(), "' --set-json '")+"'")
	w.ready()
	w.note("take-over: %s from `helm install` until the rules of all four machines are gridproxy's", time.Since(begin).Round(10*time.Millisecond))
}

// uninstall removes gridproxy and its controllers and starts kube-proxy again, for which no Service is closed.
func (w *world) uninstall() {
	w.t.Helper()
	w.shell.Run(w.t, "helm uninstall gridproxy --namespace gridproxy --wait --timeout "+waitTimeout.String())
	w.gone("gridproxy", "app.kubernetes.io/name=gridproxy")
	begin := time.Now()
	w.startKubeProxy()
	for _, m := range w.Machines() {
		wait.Until(w.t, "the rules are kube-proxy's", func() error { return w.leads(m.Name, "closed", len(w.Machines())) })
	}
	w.note("way back: %s from `kubectl apply` until the rules of all four machines are kube-proxy's", time.Since(begin).Round(10*time.Millisecond))
}

func (w *world) gone(namespace, selector string) {
	w.t.Helper()
	wait.Until(w.t, "the Pods with "+selector+" are gone", func() error {
		list, err := w.Client.CoreV1().Pods(namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: selector})
		return errors.Join(err, wait.Check(len(list.Items) == 0, "%d are there", len(list.Items)))
	})
}

// pid is the process of a name in the network of a machine, by its number on the test's machine, or
// 0.
func (w *world) pid(machine, name string) int { return process(w.Machine(machine).Namespace, name) }

func process(at *netns.Namespace, name string) int {
	var network string
	err := at.Do(func() (err error) {
		network, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		return 0
	}
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, dir := range all {
		if comm, _ := os.ReadFile(dir + "/comm"); strings.TrimSpace(string(comm)) != name {
			continue
		}
		if at, _ := os.Readlink(dir + "/ns/net"); at == network {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	return 0
}

// end ends a daemon by a signal, and waits until another process has taken its place and has synced.
func (w *world) end(machine string, signal syscall.Signal) {
	w.t.Helper()
	before := w.pid(machine, "gridproxy")
	if before == 0 {
		w.t.Fatalf("no gridproxy runs on %s", machine)
	}
	w.must(syscall.Kill(before, signal))
	w.must(w.another(machine, before))
}

// another waits until gridproxy on a machine is another process than before, and ready.
func (w *world) another(machine string, before int) error {
	return wait.Usual.For(w.t.Context(), func(ctx context.Context) error {
		if err := w.Machine(machine).Namespace.Readyz(ctx); err != nil {
			return err
		}
		now := w.pid(machine, "gridproxy")
		return wait.Check(now != 0 && now != before, "gridproxy on %s is process %d, after %d", machine, now, before)
	})
}
