package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/netns"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSiteAlone takes the uplink of two sites away, one served by gridproxy and one by the real
// kube-proxy, gives it back, and compares what clients in the sites notice.
func TestSiteAlone(t *testing.T) {
	w := newSiteCluster(t)
	defer func() { t.Logf("what clients in a cut off site noticed:\n%s", w.figures) }()
	w.shortCut()
	w.middleCut()
	w.longCut()
	w.withoutGrace()
}

// afterReturn is for how long clients go on asking after the link has returned.
const afterReturn = 30 * time.Second

// shortCut: 10 s without uplink, and the proxies are killed and started meanwhile.
func (w *siteCluster) shortCut() {
	w.t.Helper()
	const cut = "cut of 10 s"
	w.cutOff()
	w.restart(func(s *remoteSite) string { return s.stays })
	w.ask200(cut, "web")
	w.comeBack(cut, 10*time.Second, "web", "steady-")
}

// middleCut: the cloud believes that the Pods of both sites are not ready, but a proxy may have
// missed the API server for a few seconds only, as it does not notice at once.
func (w *siteCluster) middleCut() {
	w.t.Helper()
	const cut = "cut of 50 s"
	w.cutOff()
	w.unready()
	w.comeBack(cut, 50*time.Second, "web", "steady-")
}

// longCut: 2 minutes, with everything that can happen meanwhile.
func (w *siteCluster) longCut() {
	w.t.Helper()
	const cut = "cut of 2 min"
	w.cutOff()
	w.ask200(cut, "web")
	w.reboot(cut)
	w.restart(func(s *remoteSite) string { return s.stays })
	w.ask200(cut+", after reboot and restart", "steady-")
	w.unready()
	w.change()
	w.evicted()
	w.comeBack(cut+", with changes", 2*time.Minute, "steady-", "evicted-")
}

// withoutGrace: gridproxy that holds no endpoint refuses, as kube-proxy does.
func (w *siteCluster) withoutGrace() {
	w.t.Helper()
	s := w.sites[0]
	for _, machine := range s.machines() {
		w.must(w.kill(s, machine))
		w.must(w.start(s, machine, "--reconnect-grace=0"))
	}
	for _, machine := range s.machines() {
		w.must(inTime(w.t.Context(), w.Machine(machine).Namespace.Readyz))
	}
	const cut = "cut of 75 s, --reconnect-grace=0"
	w.cutOff()
	w.unready()
	if sum := w.askThrough(cut, 75*time.Second, "steady-"); sum[ours]["steady-"].failed() == 0 {
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
		from := map[string]asked{}
		var mu sync.Mutex
		var asking sync.WaitGroup
		for _, machine := range s.machines() {
			asking.Go(func() {
				got := s.times(w.t.Context(), n, w.Machine(machine).Namespace, w.vip(name))
				mu.Lock()
				defer mu.Unlock()
				from[machine] = got
			})
		}
		asking.Wait()
		for i, machine := range s.machines() {
			got := from[machine]
			w.figures.set(fmt.Sprintf("%s: %s from machine %d", when, service, i+1), s.proxy, "%s", got)
			if s.proxy == ours && got.failed() > 0 {
				w.t.Errorf("%s: %s from %s: %s; %s", when, service, machine, got, got.list(time.Now()))
			}
		}
		return nil
	})
}

// restart kills the proxy on one machine of each site, and starts it again.
func (w *siteCluster) restart(which func(*remoteSite) string) {
	w.t.Helper()
	w.each(func(s *remoteSite) error {
		if err := w.kill(s, which(s)); err != nil {
			return err
		}
		return w.start(s, which(s))
	})
}

// notAnswered is for how long a machine without state is asked.
const notAnswered = 10 * time.Second

// reboot reboots one machine of each site. Without its saved state, gridproxy answers nothing. With
// it, gridproxy answers as soon as it has started. kube-proxy has no state.
func (w *siteCluster) reboot(when string) {
	w.t.Helper()
	w.each(func(s *remoteSite) error {
		m := w.Machine(s.reboots)
		if err := m.PowerOff(); err != nil {
			return err
		}
		return m.PowerOnCutOff(w.t.Context())
	})
	w.each(func(s *remoteSite) error {
		m := w.Machine(s.reboots)
		if err := w.start(s, s.reboots, "--state-dir="+stateDir+"-empty"); err != nil {
			return err
		}
		got := w.askFor(s, m.Namespace, notAnswered)
		w.figures.set(when+": in 10 s after a reboot, no saved state", s.proxy, "%s", got)
		if got.answered > 0 {
			return fmt.Errorf("%s without state answers: %s", s.proxy, got)
		}
		if s.proxy == theirs {
			w.figures.set(when+": first answer after a reboot", s.proxy, "none until the link returns")
			return nil
		}
		if err := w.kill(s, s.reboots); err != nil {
			return err
		}
		begin := time.Now()
		if err := w.start(s, s.reboots); err != nil {
			return err
		}
		from, to := m.Namespace, w.vip(s.service("steady"))
		err := inTime(w.t.Context(), func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // else a packet sent too early costs a second
			defer cancel()
			return s.ask(ctx, from, to, answerWithin).last
		})
		w.figures.set(when+": first answer after a reboot", s.proxy, "%s after the start", time.Since(begin).Round(time.Millisecond))
		return err
	})
}

// askFor asks a Service from a machine, again and again for a time.
func (w *siteCluster) askFor(s *remoteSite, from *netns.Namespace, d time.Duration) asked {
	end := time.Now().Add(d)
	to := w.vip(s.service("steady"))
	var sum asked
	for time.Now().Before(end) {
		sum = sum.plus(s.ask(w.t.Context(), from, to, answerWithin))
	}
	return sum
}

// unready waits until the cloud says that no Pod of either site is ready.
func (w *siteCluster) unready() {
	w.t.Helper()
	w.each(func(s *remoteSite) error {
		return inTime(w.t.Context(), func(ctx context.Context) error {
			ready, err := w.endpoints(ctx, s)
			if err == nil && len(ready) > 0 {
				err = fmt.Errorf("%v are ready", ready)
			}
			return err
		})
	})
}

// change makes changes that the sites learn when the link returns.
func (w *siteCluster) change() {
	w.t.Helper()
	for _, s := range w.sites {
		w.MustKubectl(w.t, "scale", "deployment", s.service("scaled"), "--replicas=1")
		w.MustKubectl(w.t, "delete", "pod", "--selector=app=web", "--field-selector=spec.nodeName="+s.stays, "--wait=false")
		w.MustKubectl(w.t, "patch", "service", s.service("scaled"), "--type=json",
			`--patch=[{"op":"add","path":"/spec/ports/-","value":{"name":"more","port":81,"targetPort":8080}}]`)
	}
}

// evicted waits until the cloud has marked those Pods as terminating that do not tolerate a lost
// Node for long.
func (w *siteCluster) evicted() {
	w.t.Helper()
	w.each(func(s *remoteSite) error {
		return inTime(w.t.Context(), func(ctx context.Context) error {
			pods, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + s.service("evicted")})
			if err != nil {
				return err
			}
			for _, p := range pods.Items {
				if p.DeletionTimestamp != nil {
					return nil
				}
			}
			return fmt.Errorf("no Pod of %d is terminating", len(pods.Items))
		})
	})
}

// comeBack gives the link back under the requests of clients. None of them to a Service whose
// endpoints live may fail in gridproxy's site.
func (w *siteCluster) comeBack(when string, after time.Duration, services ...string) {
	w.t.Helper()
	for service, got := range w.askThrough(when, after, services...)[ours] {
		if service != "evicted-" && got.failed() > 0 {
			w.t.Errorf("%s: clients of %s: %s, after the return:%s", when, service, got, got.list(w.returned))
		}
	}
}

// beforeReturn is for how long clients ask before the link returns.
const beforeReturn = 2 * time.Second

// askThrough gives the link back so long after the cut began. Clients ask before it and after it,
// until everything is right in both sites, at least for afterReturn. It returns the outcome by
// proxy and Service.
func (w *siteCluster) askThrough(when string, after time.Duration, services ...string) map[string]map[string]asked {
	w.t.Helper()
	w.until(w.began.Add(after - beforeReturn))
	c := w.clients(services...)
	w.until(time.Now().Add(beforeReturn))
	w.rejoin()
	w.t.Logf("%s: it lasted %s", when, w.returned.Sub(w.began).Round(100*time.Millisecond))
	w.each(func(s *remoteSite) error {
		err := w.right(w.t.Context(), s)
		w.figures.set(when+": everything is right", s.proxy, "%s after the return", time.Since(w.returned).Round(100*time.Millisecond))
		return err
	})
	w.until(w.returned.Add(afterReturn))
	sums := c.stop()
	for proxy, sum := range sums {
		for service, got := range sum {
			w.figures.set(when+": clients of "+service, proxy, "%s", got)
		}
	}
	return sums
}
