package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
	"gridproxy/integration/manifests/chart"

	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"
)

// strangePod: a Pod whose address is in no podCIDR of its Node, as with a network plugin that gives
// addresses of its own, is answered as every other.
func (w *namesCluster) strangePod() {
	w.t.Helper()
	m := w.Machine("bj-1").Namespace
	pod, err := netns.NewNamespace("stranger")
	must(w.t, err)
	w.t.Cleanup(func() { _ = pod.Close() })
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "stranger"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(pod.FD())}
	must(w.t, m.Links().LinkAdd(veth))
	gateway, own := net.IPv4(192, 168, 77, 1), net.IPv4(192, 168, 77, 2)
	for _, end := range []struct {
		links *netlink.Handle
		name  string
		addr  net.IP
	}{{m.Links(), "stranger", gateway}, {pod.Links(), "eth0", own}} {
		link, err := end.links.LinkByName(end.name)
		must(w.t, err)
		must(w.t, end.links.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: end.addr, Mask: net.CIDRMask(24, 32)}}))
		must(w.t, end.links.LinkSetUp(link))
	}
	must(w.t, pod.Links().RouteAdd(&netlink.Route{Gw: gateway}))
	client := w.clients["bj-1"]
	defer func() { w.clients["bj-1"] = client }()
	w.allCounted(func() {
		w.clients["bj-1"] = pod
		must(w.t, w.check("bj-1", expectedName{name: "db.shop.svc.cluster.local", qtype: dns.TypeA, beijing: "10.250.0.1"}))
	})
}

// Names outside of the cluster. The second is in questions only while the cloud is away.
const (
	askedName   = "asked.example"
	neverName   = "never.example"
	outsideAddr = "192.0.2.1"
)

// offline takes the uplink of a unit away. What was asked before is answered, and what was not
// fails soon. Then the daemons and the servers are killed, and started by their kubelets.
func (w *namesCluster) offline() {
	w.t.Helper()
	site := []string{"bj-1", "bj-2"}
	for _, machine := range site {
		must(w.t, w.check(machine, expectedName{name: askedName, qtype: dns.TypeA, beijing: outsideAddr}))
	}
	w.saved(time.Now(), site...)
	must(w.t, w.CutOff(w.Machine(site[0]), w.Machine(site[1])))
	defer func() { must(w.t, w.Rejoin(w.Machine(site[0]), w.Machine(site[1]))) }()
	until(w.t, time.Now().Add((outsideTTL+1)*time.Second)) // it is over: an answer is a stale one
	for _, machine := range site {
		must(w.t, w.check(machine, expectedName{name: askedName, qtype: dns.TypeA, beijing: outsideAddr}))
		w.failsSoon(machine)
	}
	w.tableAt("cut off", site...)
	for _, machine := range site {
		w.killPrograms(machine)
	}
	for _, machine := range site {
		w.isLocal(machine)
		w.failsSoon(machine)
	}
	w.tableAt("killed and started while cut off", site...)
}

// saved makes a change, and waits until what is known after it is on the disks of machines: a
// daemon saves once a minute at most.
func (w *namesCluster) saved(after time.Time, site ...string) {
	w.t.Helper()
	w.MustKubectl(w.t, "create", "namespace", "saved")
	for _, machine := range site {
		wait.Until(w.t, "the daemon on "+machine+" saves", func() error {
			info, err := os.Stat(w.Machine(machine).Disk("/var/lib/gridproxy/state"))
			if err == nil && info.ModTime().Before(after) {
				err = fmt.Errorf("the state is of %s", info.ModTime())
			}
			return err
		})
	}
}

// failsSoon checks that a name which cannot be known is refused before the client gives up.
func (w *namesCluster) failsSoon(machine string) {
	w.t.Helper()
	begin := time.Now()
	got, err := w.asks(machine, neverName, dns.TypeA)
	w.t.Logf("on %s, %s is %q after %s", machine, neverName, got, time.Since(begin).Round(time.Millisecond))
	if err != nil || got != "SERVFAIL" {
		w.t.Errorf("on %s, %s is %q (%v), want a failure", machine, neverName, got, err)
	}
}

// tableAt asks for every name of the cluster on some machines. What an alias leads to is outside,
// and so is an address that no one here has.
func (w *namesCluster) tableAt(when string, site ...string) {
	w.t.Helper()
	names := expectedNames()
	for n := range 3 {
		name := fmt.Sprintf("%s-%d.%s", manualGrid, n, manualService)
		names = append(names, expectedName{name: name, qtype: dns.TypeA, beijing: w.address(fmt.Sprintf("%s-beijing-%d", manualGrid, n))})
	}
	for _, machine := range site {
		for _, e := range names {
			if e.asked > 0 || e.qtype == dns.TypePTR && e.at(machine) == "NXDOMAIN" {
				continue
			}
			if err := w.check(machine, e); err != nil {
				w.t.Errorf("%s: %v", when, err)
			}
		}
	}
}

// killPrograms is kill -9 of the daemon and the server on a machine, at the same time, and removes
// what the server has on disk: the daemon has to tell it. It returns when both run again.
func (w *namesCluster) killPrograms(machine string) {
	w.t.Helper()
	var before []string
	for _, program := range daemonAndServer {
		pid, err := w.processID(machine, program)
		must(w.t, err)
		before = append(before, pid)
	}
	m := w.Machine(machine)
	_, err := m.Run(w.t.Context(), nil, "rm", "-f", namesFile)
	must(w.t, err)
	_, err = m.Run(w.t.Context(), nil, "kill", append([]string{"-9"}, before...)...)
	must(w.t, err)
	for i, program := range daemonAndServer {
		w.runsAnew(machine, program, before[i])
	}
}

// What is run on a machine, and what the server remembers.
const (
	daemonCommand = "gridproxy run"
	serverCommand = "grid-dns serve"
	namesFile     = "/run/grid-dns/names"
)

// daemonAndServer are the programs that can be killed.
var daemonAndServer = []string{daemonCommand, serverCommand}

func (w *namesCluster) processID(machine, command string) (string, error) {
	out, err := w.Machine(machine).Run(w.t.Context(), nil, "pgrep", "--oldest", "--full", "^"+command)
	return strings.TrimSpace(string(out)), err
}

// runsAnew waits until a program runs in another process than before.
func (w *namesCluster) runsAnew(machine, command, before string) {
	w.t.Helper()
	wait.Until(w.t, command+" runs again on "+machine, func() error {
		pid, err := w.processID(machine, command)
		return errors.Join(err, wait.Check(pid != before, "process %s has not ended", pid))
	})
}

func (w *namesCluster) showPrograms() {
	w.t.Helper()
	out, err := w.Kubectl("logs", "--namespace="+chart.Namespace, "--selector=app.kubernetes.io/part-of=gridproxy", "--prefix", "--tail=15", "--max-log-requests=20")
	w.t.Logf("the end of the logs (%v):\n%s", err, out)
}
