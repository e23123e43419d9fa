package kernel

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

// The rules around IPVS are the same with iptables-legacy.
func TestIPVSWithLegacy(t *testing.T) {
	eachOf(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		s := newExposed("legacy", 180)
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
		w.Must(w.RouteServicesVia(w.Lab.Node("bj-1")))
		w.run([]string{"bj-1"}, detect()...)
		pod, unit := w.Endpoint("bj-1"), w.endpoints("bj-1", "bj-3")
		for _, f := range netns.Families() {
			w.reaches(pod.Namespace, "tcp", netns.VIP(f, 180), unit...) // the Pod itself is among them
			w.reaches(w.Lab.Node("bj-1").Namespace, "udp", netns.VIP(f, 180), unit...)
			w.reaches(pod.Namespace, "tcp", w.nodePortOn("bj-1", f), unit...)
			w.seen(w.Outside, netns.Balancer(f, 180), w.Outside.Addr(f), pod)
			w.refused(pod.Namespace, "tcp", netip.AddrPortFrom(netns.VIP(f, 180).Addr(), 81))
		}
		w.reaches(w.Lab.Node("bj-1").Namespace, "tcp", loopback4, unit...)
	}, ipvsLegacy)
}

// A port of a cluster IP that no Service has is refused, from everywhere, though in IPVS mode the
// address is one of the node's own: what listens on the node does not answer there.
func TestUnknownPort(t *testing.T) {
	const port = 9999
	eachOf(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "gz-2")
		s := newExposed("known", 181)
		w.Serve(s, w.endpoints("bj-1", "gz-2")...)
		node := w.Lab.Node("bj-1")
		w.Must(node.Do(func() error {
			listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
			if err == nil {
				t.Cleanup(func() { listener.Close() })
			}
			return err
		}))
		w.Must(w.RouteServicesVia(w.Lab.Node("bj-1")))
		w.run([]string{"bj-1"}, detect()...)
		for _, f := range netns.Families() {
			var unknown []netip.AddrPort
			for _, p := range []uint16{port, nodePort, 10256} {
				for _, at := range []netip.AddrPort{netns.VIP(f, 181), netns.Balancer(f, 181), netns.External(f, 181)} {
					unknown = append(unknown, netip.AddrPortFrom(at.Addr(), p))
				}
			}
			for _, from := range []*netns.Namespace{w.Client("bj-1").Namespace, node.Namespace, w.Outside} {
				for _, network := range networks() {
					w.refused(from, network, unknown...)
				}
				w.reaches(from, "tcp", netns.VIP(f, 181), w.Endpoint("bj-1"))
				conn, err := from.Dial(wait.Usual.Context(w.t), "tcp", netip.AddrPortFrom(node.Addr(f), port))
				w.Must(err)
				conn.Close()
			}
		}
	}, ipvs)
}

// A virtual server of another program is left alone, even where a Service of ours wants its
// address and port, and addresses inside --ipvs-exclude-cidrs are spelled in chains.
func TestForeignServers(t *testing.T) {
	eachOf(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		for name, last := range map[string]byte{"taken": 182, "free": 183, "excluded": 200} {
			w.Serve(netns.NewClosedService(name, last), w.endpoints("bj-1", "bj-3", "gz-2")...)
		}
		w.addForeignIPVS("bj-1")
		taken := []string{"-A -t 172.16.33.182:80 -s wlc", "-a -t 172.16.33.182:80 -r 10.0.0.139:8080 -m -w 3"}
		w.Command("bj-1", strings.Join(taken, "\n")+"\n", "ipvsadm", "-R")
		flags := append(detect(), "--ipvs-exclude-cidrs", "172.16.33.200/29,fd00:99::c8/125")
		w.run([]string{"bj-1"}, flags...)
		for _, f := range netns.Families() {
			for _, last := range []byte{183, 200} {
				for _, network := range networks() {
					w.reaches(w.Client("bj-1").Namespace, network, netns.VIP(f, last), w.endpoints("bj-1", "bj-3")...)
				}
			}
		}
		// Its address is on our link because of UDP. That does not make it ours, not even for a daemon
		// that finds it at its start.
		w.Stop("bj-1", true)
		w.run([]string{"bj-1"}, flags...)
		state := w.IPVSState("bj-1")
		for _, line := range append(taken, strings.Split(strings.TrimSpace(foreignServer), "\n")...) {
			if !slices.Contains(state, line) {
				t.Errorf("%q is gone", line)
			}
		}
		for _, line := range state {
			if strings.Contains(line, "-t 172.16.33.182:80 -r 10.0.0.70") || strings.Contains(line, "172.16.33.200:80") || strings.Contains(line, "[fd00:99::c8]:80") {
				t.Errorf("%q was made", line)
			}
		}
		if log := w.Daemons["bj-1"].Log().String(); !strings.Contains(log, "172.16.33.182:80") {
			t.Errorf("the log does not name the address that is taken:\n%s", log)
		}
	}, ipvs)
}

// A Service may have a scheduler of its own; where the kernel has none of that name, the default
// serves, and the log says so.
func TestScheduler(t *testing.T) {
	eachOf(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1")
		for name, scheduler := range map[string]string{"usual": "", "weighed": "wlc", "hashed": "mh", "wrong": "nosuch"} {
			last := map[string]byte{"usual": 184, "weighed": 185, "hashed": 186, "wrong": 187}[name]
			s := netns.NewClosedService(name, last)
			if scheduler != "" {
				s.Annotations["superedge.io/ipvs-scheduler"] = scheduler
			}
			w.Serve(s, w.endpoints("bj-1")...)
		}
		w.run([]string{"bj-1"}, append(detect(), "--ipvs-scheduler", "lc")...)
		state := w.IPVSState("bj-1")
		for last, scheduler := range map[byte]string{184: "lc", 185: "wlc", 186: "mh", 187: "lc"} {
			for _, f := range netns.Families() {
				prefix := fmt.Sprintf("-A -t %s -s %s", netns.VIP(f, last), scheduler)
				if !slices.ContainsFunc(state, func(line string) bool { return line == prefix || strings.HasPrefix(line, prefix+" ") }) {
					t.Errorf("no %q in\n%s", prefix, strings.Join(state, "\n"))
				}
				w.reaches(w.Client("bj-1").Namespace, "tcp", netns.VIP(f, last), w.Endpoint("bj-1"))
			}
		}
		if log := w.Daemons["bj-1"].Log().String(); !strings.Contains(log, "nosuch") {
			t.Errorf("the log does not name the scheduler that the kernel lacks:\n%s", log)
		}
	}, ipvs)
}

// On a kernel without IPVS the daemon ends at once and says what is missing, and what to do. Nothing
// has then been written.
func TestWithoutIPVS(t *testing.T) {
	need.IPTables(t)
	if need.MissingIPVS() == "" {
		t.Skip("SKIPPED: this kernel has IPVS; run this on one that has not")
	}
	w := newWorld(t, ipvs, "bj-1")
	w.Serve(netns.NewClosedService("nowhere", 188), w.endpoints("bj-1")...)
	w.apply()
	d, err := w.Lab.Node("bj-1").RunGridproxy(w.Program, w.Dir, append(ipvs.flags(), append(detect(), netns.NoStatusSocket)...)...)
	w.Must(err)
	wait.Until(t, "the daemon ends", func() error { return wait.Check(d.ExitCode() != -1, "it runs") })
	log := d.Log().String()
	for _, word := range []string{"ip_vs", "ip_vs_rr", "modprobe", "--proxy-mode=iptables"} {
		if !strings.Contains(log, word) {
			t.Errorf("%q is not in what the daemon said: %s", word, log)
		}
	}
	if d.ExitCode() == 0 {
		t.Error("the daemon ended with code 0")
	}
	if save := w.Rules("bj-1", netns.IPv4); slices.ContainsFunc(save, func(line string) bool { return strings.Contains(line, "KUBE-") }) {
		t.Errorf("rules were written:\n%s", strings.Join(save, "\n"))
	}
}
