package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSiteAlone takes the uplink of two sites away, one served by gridproxy and one by the real
// kube-proxy, gives it back, and compares what clients in the sites notice.
func TestSiteAlone(t *testing.T) {
	w := newSiteCluster(t)
	defer w.showFigures()
	w.shortCut()
	w.longCut()
}

// TestSiteAloneGrace does so while the kubelets are later than the proxies: what gridproxy holds
// for --reconnect-grace, and that clients notice when it holds nothing.
func TestSiteAloneGrace(t *testing.T) {
	w := newSiteCluster(t)
	defer w.showFigures()
	w.middleCut()
	w.withoutGrace()
}

// showFigures prints what clients noticed, and after a failure the logs of gridproxy.
func (w *siteCluster) showFigures() {
	w.t.Logf("what clients in a cut off site noticed:\n%s", w.figures)
	if w.t.Failed() {
		w.showDaemons(w.sites[0])
	}
}

// afterReturn is for how long clients go on asking after the link has returned.
const afterReturn = 30 * time.Second

// shortCut: 10 s without uplink, and the proxies are killed and started meanwhile.
func (w *siteCluster) shortCut() {
	w.t.Helper()
	const cut = "cut of 10 s"
	w.cutOff()
	w.restart(cut, "web")
	w.comeBack(cut, 10*time.Second, "web", "steady-")
}

// middleCut: the cloud believes that the Pods of both sites are not ready, but a proxy may have
// missed the API server for a few seconds only, as it does not notice at once. The kubelets are
// later than the proxies.
func (w *siteCluster) middleCut() {
	w.t.Helper()
	const cut = "cut of 50 s"
	w.cutOff()
	w.unready()
	defer w.lateKubelets()()
	w.comeBack(cut, 50*time.Second, "web", "steady-")
}

// longCut: 2.5 minutes, with everything that can happen meanwhile. The cloud deletes every Pod that
// does not tolerate a lost Node without a limit.
func (w *siteCluster) longCut() {
	w.t.Helper()
	const cut, lasts = "cut of 2.5 min", 150 * time.Second
	w.cutOff()
	w.ask200(cut, "web")
	w.reboot(cut)
	w.restart(cut+", after reboot", "steady-")
	w.unready()
	w.change()
	w.deletePods()
	for _, app := range []string{"evicted", "scaled"} {
		w.evicted(app, w.began.Add(lasts-beforeReturn))
	}
	for _, service := range []string{"steady-", "moved-"} {
		w.ask200(cut+", Pods terminating", service)
	}
	w.comeBack(cut, lasts, "steady-", "moved-", "evicted-", "scaled-")
}

// withoutGrace: gridproxy that holds no endpoint refuses, as kube-proxy does.
func (w *siteCluster) withoutGrace() {
	w.t.Helper()
	w.replace(w.sites[0], "--reconnect-grace=0")
	const cut = "cut of 75 s, --reconnect-grace=0"
	w.cutOff()
	w.unready()
	defer w.lateKubelets()()
	if sum := w.askThrough(cut, 75*time.Second, "steady-"); unanswered(sum[ours]["steady-"]) == 0 {
		w.t.Error("without grace no request failed: the test does not see waves")
	}
}

// ask200 asks a Service from each machine. All must be answered in gridproxy's site.
func (w *siteCluster) ask200(when, service string) {
	w.t.Helper()
	const n = 200
	w.each(func(s *remoteSite) error {
		name := service
		if service != "web" {
			name += s.unit
		}
		from := map[string]traffic.Tally{}
		var mu sync.Mutex
		var asking sync.WaitGroup
		for _, machine := range s.machines() {
			asking.Go(func() {
				got := s.times(w.t.Context(), n, traffic.Way{From: w.Machine(machine).Namespace, To: w.vip(name)})
				mu.Lock()
				defer mu.Unlock()
				from[machine] = got
			})
		}
		asking.Wait()
		for i, machine := range s.machines() {
			got := from[machine]
			w.figures.set(fmt.Sprintf("%s: %s from machine %d", when, service, i+1), s.proxy, "%s", got)
			if s.proxy == ours {
				w.allAnswered(fmt.Sprintf("%s: %s from %s", when, service, machine), got, w.began)
			}
		}
		return nil
	})
}

// unready waits until the cloud says that no Pod of either site is ready.
func (w *siteCluster) unready() {
	w.t.Helper()
	w.each(func(s *remoteSite) error {
		return wait.Usual.For(w.t.Context(), func(ctx context.Context) error {
			ready, err := w.endpoints(ctx, s)
			return errors.Join(err, wait.Check(len(ready) == 0, "%v are ready", ready))
		})
	})
}

// change makes changes that the sites learn when the link returns: a Service has another port and
// more Pods, and a Pod moves to another machine of its site.
func (w *siteCluster) change() {
	w.t.Helper()
	for _, s := range w.sites {
		w.MustKubectl(w.t, "scale", "deployment", s.service("scaled"), "--replicas=3")
		w.MustKubectl(w.t, "patch", "service", s.service("scaled"), "--type=json",
			`--patch=[{"op":"add","path":"/spec/ports/-","value":{"name":"more","port":81,"targetPort":8080}}]`)
		w.MustKubectl(w.t, "patch", "deployment", s.service("moved"),
			`--patch={"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"`+s.reboots+`"}}}}}`)
	}
}

// deletePods deletes the Pods of web on the machines that stay.
func (w *siteCluster) deletePods() {
	w.t.Helper()
	for _, s := range w.sites {
		w.MustKubectl(w.t, "delete", "pod", "--selector=app=web", "--field-selector=spec.nodeName="+s.stays, "--wait=false")
	}
}

// evicted waits until the cloud has marked all Pods of an app as terminating that were on machines
// of a site when the link was cut.
func (w *siteCluster) evicted(app string, deadline time.Time) {
	w.t.Helper()
	w.each(func(s *remoteSite) error {
		ctx, cancel := context.WithDeadline(w.t.Context(), deadline)
		defer cancel()
		return wait.For(ctx, func(ctx context.Context) error {
			pods, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + s.service(app)})
			if err != nil {
				return err
			}
			terminating := 0
			for _, p := range pods.Items {
				switch {
				case p.DeletionTimestamp != nil:
					terminating++
				case p.Spec.NodeName != "":
					return fmt.Errorf("pod %s on %s is not terminating", p.Name, p.Spec.NodeName)
				}
			}
			return wait.Check(terminating != 0, "none of %d Pods of %s is terminating", len(pods.Items), app)
		})
	})
	w.t.Logf("all Pods of %s- are terminating %s after the cut", app, time.Since(w.began).Round(100*time.Millisecond))
}

// comeBack gives the link back under the requests of clients. None of them to a Service whose
// endpoints live may fail in gridproxy's site: those of evicted and scaled do not.
func (w *siteCluster) comeBack(when string, after time.Duration, services ...string) {
	w.t.Helper()
	for service, got := range w.askThrough(when, after, services...)[ours] {
		who := fmt.Sprintf("%s: clients of %s, times since the return", when, service)
		if service == "evicted-" || service == "scaled-" {
			w.t.Logf("%s: %s%s", who, got, got.List(w.returned))
			continue
		}
		w.allAnswered(who, got, w.returned)
	}
}

// beforeReturn is for how long clients ask before the link returns.
const beforeReturn = 2 * time.Second

// askThrough gives the link back so long after the cut began. Clients ask before it and after it,
// until everything is right in both sites, at least for afterReturn. It returns the outcome by
// proxy and Service.
func (w *siteCluster) askThrough(when string, after time.Duration, services ...string) map[string]map[string]traffic.Tally {
	w.t.Helper()
	until(w.t, w.began.Add(after-beforeReturn))
	c := w.clients(services...)
	until(w.t, time.Now().Add(beforeReturn))
	w.rejoin()
	w.t.Logf("%s: it lasted %s", when, w.returned.Sub(w.began).Round(100*time.Millisecond))
	w.each(func(s *remoteSite) error {
		err := w.right(w.t.Context(), s)
		w.figures.set(when+": everything is right", s.proxy, "%s after the return", time.Since(w.returned).Round(100*time.Millisecond))
		return err
	})
	until(w.t, w.returned.Add(afterReturn))
	sums := w.stop(c)
	for proxy, sum := range sums {
		for service, got := range sum {
			w.figures.set(when+": clients of "+service, proxy, "%s", got)
		}
	}
	return sums
}
