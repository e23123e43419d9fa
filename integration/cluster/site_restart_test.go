package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
)

// restart kills the proxy on one machine of each site, and asks a Service while it starts again:
// ours by the kubelet, which waits the longer the oftener a container has ended.
func (w *siteCluster) restart(when, service string) {
	w.t.Helper()
	again := make(chan error, 1)
	for _, s := range w.sites {
		killed, err := w.kill(s, s.stays)
		must(w.t, err)
		if s.proxy == theirs {
			must(w.t, w.start(s, s.stays))
			continue
		}
		go func() {
			begin := time.Now()
			err := w.otherDaemon(s.stays, killed)
			w.figures.set(when+": the killed program runs again", ours, "after %s", time.Since(begin).Round(100*time.Millisecond))
			again <- err
		}()
	}
	w.ask200(when+", restart", service)
	must(w.t, <-again)
}

// notAnswered is how long the test asks a machine without state.
const notAnswered = 10 * time.Second

// reboot reboots one machine of each site. Without its saved state, gridproxy answers nothing. With
// it, gridproxy answers as soon as its kubelet has started it. kube-proxy has no state.
func (w *siteCluster) reboot(when string) {
	w.t.Helper()
	w.each(func(s *remoteSite) error {
		if s.proxy == theirs {
			return w.rebootTheirs(when, s)
		}
		return w.rebootOurs(when, s)
	})
}

func (w *siteCluster) rebootTheirs(when string, s *remoteSite) error {
	if err := w.rebootWith(s, func() error { return nil }); err != nil {
		return err
	}
	if err := w.start(s, s.reboots); err != nil {
		return err
	}
	w.figures.set(when+": first answer after a reboot", s.proxy, "none until the link returns")
	return w.answersNothing(when, s)
}

// rebootOurs reboots twice. The first time there is no static Pod, and the program is started with
// an empty folder for its state.
func (w *siteCluster) rebootOurs(when string, s *remoteSite) error {
	m := w.Machine(s.reboots)
	manifest := m.Disk(machines.Kubernetes + "/manifests/gridproxy.yaml")
	aside := m.Disk("/var/lib/gridproxy.yaml")
	if err := w.rebootWith(s, func() error { return os.Rename(manifest, aside) }); err != nil {
		return err
	}
	program, err := m.Start(ours, w.binary, "run", "--node-name="+m.Name, "--kubeconfig="+machines.Kubernetes+"/kubelet.conf",
		"--cluster-cidr="+machines.ClusterCIDRs, "--conntrack-max-per-core=0", "--state-dir=/var/lib/gridproxy-empty")
	if err != nil {
		return err
	}
	if err := w.answersNothing(when, s); err != nil {
		return err
	}
	select {
	case <-program.Done():
		return fmt.Errorf("gridproxy without state has ended: %s", program.Tail(5))
	default:
	}
	var on time.Time
	err = w.rebootWith(s, func() error {
		on = time.Now()
		return os.Rename(aside, manifest)
	})
	if err != nil {
		return err
	}
	return w.firstAnswer(when, s, on)
}

// rebootWith switches a machine off, does something to its disk, and switches it on. Its link stays
// cut.
func (w *siteCluster) rebootWith(s *remoteSite, do func() error) error {
	m := w.Machine(s.reboots)
	if err := m.PowerOff(); err != nil {
		return err
	}
	if err := do(); err != nil {
		return fmt.Errorf("changing the disk of %s: %w", m.Name, err)
	}
	return m.PowerOnCutOff(w.t.Context())
}

// answersNothing asks a Service from a machine that is cut off and has no saved state.
func (w *siteCluster) answersNothing(when string, s *remoteSite) error {
	got := w.askFor(s, w.Machine(s.reboots).Namespace, notAnswered)
	w.figures.set(when+": in 10 s after a reboot, no saved state", s.proxy, "%s", got)
	if got.Count[traffic.Local]+got.Count[traffic.Remote] > 0 {
		return fmt.Errorf("%s without state answers: %s", s.proxy, got)
	}
	return nil
}

// firstAnswer waits until a machine that was switched on has an answer from a Service. Most of the
// time, the kubelet waits for an API server, twice for 30 s, before it mounts the Pod's volumes.
func (w *siteCluster) firstAnswer(when string, s *remoteSite, on time.Time) error {
	m := w.Machine(s.reboots)
	err := wait.Usual.For(w.t.Context(), func(context.Context) error {
		_, err := w.daemon(s.reboots)
		return err
	})
	if err != nil {
		return err
	}
	daemon := time.Now()
	to := w.vip(s.service("steady"))
	err = wait.Usual.For(w.t.Context(), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // else a packet sent too early costs a second
		defer cancel()
		return s.ask(ctx, traffic.Way{From: m.Namespace, To: to}, answerWithin).Err
	})
	w.figures.set(when+": first answer after a reboot", s.proxy, "%s after power on, %s after the program",
		time.Since(on).Round(10*time.Millisecond), time.Since(daemon).Round(10*time.Millisecond))
	return err
}

// askFor asks a Service from a machine, again and again for a time.
func (w *siteCluster) askFor(s *remoteSite, from *netns.Namespace, d time.Duration) traffic.Tally {
	end := time.Now().Add(d)
	way := traffic.Way{From: from, To: w.vip(s.service("steady"))}
	var sum traffic.Tally
	for time.Now().Before(end) {
		sum = sum.With(s.ask(w.t.Context(), way, answerWithin))
	}
	return sum
}

// kubeletsLate is for how long after the return kubelets say nothing yet.
const kubeletsLate = 5 * time.Second

// lateKubelets stops the kubelets of both sites, which go on kubeletsLate after the link returns:
// so every proxy reads that the Pods are not ready, however soon it connects. The function that it
// returns makes sure that they go on.
func (w *siteCluster) lateKubelets() (goOn func()) {
	w.t.Helper()
	must(w.t, w.signalKubelets(w.t.Context(), "STOP"))
	var failed error
	once := sync.OnceFunc(func() { failed = w.signalKubelets(context.WithoutCancel(w.t.Context()), "CONT") })
	w.onReturn = func() { time.AfterFunc(kubeletsLate, once) }
	return func() {
		w.onReturn = func() {}
		once()
		must(w.t, failed)
	}
}

// signalKubelets sends a signal to the kubelet of each machine of both sites.
func (w *siteCluster) signalKubelets(ctx context.Context, signal string) error {
	const script = `for p in /proc/[0-9]*; do if [ "$(cat $p/comm 2>/dev/null)" = kubelet ]; then kill -"$0" "${p#/proc/}"; fi; done`
	for _, s := range w.sites {
		for _, machine := range s.machines() {
			if _, err := w.Machine(machine).Run(ctx, nil, "sh", "-c", script, signal); err != nil {
				return fmt.Errorf("sending signal %s to the kubelet of %s: %w", signal, machine, err)
			}
		}
	}
	return nil
}
