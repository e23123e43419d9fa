package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inGuest says that this is a virtual machine, whose kernel has IPVS, and whose processor is slow.
func inGuest() bool { return os.Getenv("GRIDPROXY_GUEST") != "" }

// elsewhere is a Node of another unit, which has no namespace here.
const elsewhere = "gz-2"

const portDNS = 53

// The addresses of the cluster's DNS, and of grid-dns.
var (
	clusterDNS = []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:96::10")}
	localDNS   = []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")}
)

// dnsNode is a node with a daemon, DNS servers, and a Pod that asks. The cluster's DNS is a fake,
// in another Pod of the node: its answer has to differ from that of grid-dns, or nothing would
// show who answered.
type dnsNode struct {
	t         testing.TB
	ctx       context.Context
	node      *netns.Node
	client    *netns.Pod
	server    *netns.Pod // of the DNS of the cluster, and an endpoint
	manifests string
	objects   *netns.Manifests // in that folder
	dir       string           // of sockets and files
	programs  dnsPrograms
	daemon    *netns.Gridproxy
	load      *traffic.Load // nil = none is running
	rate      int           // of load, queries per second

	namespaces []*netns.Namespace // of the node and of its Pods
}

type dnsPrograms struct{ gridproxy, gridDNS string }

func buildDNSPrograms(t testing.TB) dnsPrograms {
	t.Helper()
	need.IPTables(t)
	if inGuest() {
		need.IPVS(t)
	}
	return dnsPrograms{gridproxy: program.ForTest(t, program.Gridproxy), gridDNS: program.ForTest(t, program.GridDNS)}
}

func newDNSNode(t testing.TB, programs dnsPrograms) *dnsNode {
	t.Helper()
	layout := netns.Manual().Only(here)
	lab := netns.ForTest(t, layout)
	d := &dnsNode{t: t, ctx: (2 * wait.Usual).Context(t), node: lab.Node(here), client: lab.Client(here), manifests: t.TempDir(), dir: t.TempDir(), programs: programs}
	d.namespaces = append(d.namespaces, d.node.Namespace)
	for _, p := range lab.Pods() {
		d.namespaces = append(d.namespaces, p.Namespace)
	}
	m := netns.NewManifests(d.manifests, netns.Manual().Only(here, elsewhere))
	kubeDNS := netns.NewService("kube-dns", clusterDNS...)
	kubeDNS.Namespace = metav1.NamespaceSystem
	kubeDNS.Spec.Ports = []corev1.ServicePort{dnsPort("dns", corev1.ProtocolUDP), dnsPort("dns-tcp", corev1.ProtocolTCP)}
	server := lab.Pod("beijing-wrx7r")
	m.Serve(kubeDNS, server)
	who := newHeadless("who")
	m.Serve(who, server)
	d.objects, d.server = m, server
	away := &m.Slices[len(m.Slices)-2].Endpoints // IPv4
	*away = append(*away, discoveryv1.Endpoint{Addresses: []string{answerOfOther}, NodeName: new(elsewhere)})
	must(d.t, m.Write())
	serveFakeDNS(t, server)
	return d
}

func newHeadless(name string) *corev1.Service {
	s := netns.NewService(name)
	s.Namespace, s.Spec.ClusterIP, s.Spec.ClusterIPs = "shop", corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
	netns.Confine(s, `["`+netns.UnitKey+`"]`)
	return s
}

func dnsPort(name string, protocol corev1.Protocol) corev1.ServicePort {
	p := netns.EchoServicePort(name, protocol)
	p.Port, p.TargetPort.IntVal = portDNS, portDNS
	return p
}

// silentZone is the domain of a tenant whose servers never answer.
const silentZone = "silent.example."

// serveFakeDNS answers every query in a Pod as the DNS of the cluster, except those of silentZone.
func serveFakeDNS(t testing.TB, pod *netns.Pod) {
	t.Helper()
	record, err := dns.NewRR(askedName + " 5 IN A " + answerOfCloud)
	must(t, err)
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		if dns.IsSubDomain(silentZone, query.Question[0].Name) {
			return
		}
		answer := new(dns.Msg).SetReply(query)
		answer.Answer = []dns.RR{record}
		_ = w.WriteMsg(answer) // a client that is gone needs no answer
	})
	for _, network := range []string{"udp", "tcp"} {
		started := make(chan struct{})
		s := &dns.Server{Addr: fmt.Sprintf(":%d", portDNS), Net: network, Handler: handler, NotifyStartedFunc: sync.OnceFunc(func() { close(started) })}
		ended := make(chan error, 1)
		go func() { ended <- pod.Do(s.ListenAndServe) }()
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-started:
		}
		t.Cleanup(func() { _ = s.Shutdown() })
	}
}

func (d *dnsNode) socket() string { return filepath.Join(d.dir, "names.sock") }

// run starts the daemon with DNS, and further flags.
func (d *dnsNode) run(flags ...string) {
	d.t.Helper()
	d.runWithout(append([]string{"--local-dns", "--names-socket", d.socket()}, flags...)...)
}

func (d *dnsNode) runWithout(flags ...string) {
	d.t.Helper()
	mode := "iptables"
	if inGuest() {
		mode = "ipvs"
	}
	args := append([]string{"--iptables-variant", "nft", "--proxy-mode", mode, "--cluster-cidr", netns.ClusterCIDRs(), netns.NoStatusSocket}, flags...)
	daemon, err := d.node.RunGridproxy(d.programs.gridproxy, d.manifests, args...)
	must(d.t, err)
	d.daemon = daemon
	d.t.Cleanup(func() { d.log("the daemon", daemon.Process) })
	must(d.t, daemon.Ready(d.ctx))
}

// serve starts a grid-dns, which answers when serve returns.
func (d *dnsNode) serve() *netns.Process {
	d.t.Helper()
	server, err := d.node.Start(d.programs.gridDNS, "serve", "--names-socket", d.socket(), "--names-file", filepath.Join(d.dir, "names"))
	must(d.t, err)
	d.t.Cleanup(func() { d.log("grid-dns", server) })
	wait.Until(d.t, "grid-dns answers", func() error {
		if server.Log().Contains("msg=answering") {
			return nil
		}
		return fmt.Errorf("grid-dns logged:\n%s", server.Log())
	})
	return server
}

func (d *dnsNode) log(name string, p *netns.Process) {
	if d.t.Failed() {
		d.t.Logf("%s logged:\n%s", name, p.Log())
	}
}

// ways returns those from the Pod and from the node itself, in both families.
func (d *dnsNode) ways() []traffic.Way {
	var all []traffic.Way
	for _, from := range []*netns.Namespace{d.client.Namespace, d.node.Namespace} {
		for _, addr := range clusterDNS {
			all = append(all, traffic.Way{From: from, To: netip.AddrPortFrom(addr, portDNS)})
		}
	}
	return all
}

// answeredBy waits until the queries of all ways have an outcome.
func (d *dnsNode) answeredBy(want traffic.Outcome) {
	d.t.Helper()
	d.answered(d.ways(), want)
}

func (d *dnsNode) answered(ways []traffic.Way, want traffic.Outcome) {
	d.t.Helper()
	wait.Until(d.t, "every query has its outcome", func() error {
		for _, w := range ways {
			if got := dnsQuestion().Once(d.ctx, w); got.Outcome != want {
				return errors.Join(fmt.Errorf("%s: %s, want %s", w, got.Outcome, want), got.Err)
			}
		}
		return nil
	})
}

// noFlowElsewhere waits until the flows of queries from before are over: the cluster's DNS answers
// those that were under way a second ago, and who takes the port of one is led there too.
func (d *dnsNode) noFlowElsewhere() {
	d.t.Helper()
	wait.Until(d.t, "no flow leads to the cluster's DNS", func() error { return d.node.FlowElsewhere(clusterDNS, localDNS) })
}

// overflows are the datagrams that were dropped because a program did not read them in time.
func (d *dnsNode) overflows() (n int) {
	d.t.Helper()
	for _, ns := range d.namespaces {
		dropped, err := ns.Overflows()
		must(d.t, err)
		n += dropped
	}
	return n
}

// kill ends processes at once, as the kernel does when memory runs out.
func kill(all ...*netns.Process) {
	for _, p := range all {
		p.Kill()
	}
}

// suspend stops a process as a debugger does, or a host that has no time for it.
func (d *dnsNode) suspend(p *netns.Process) {
	d.t.Helper()
	must(d.t, syscall.Kill(p.PID(), syscall.SIGSTOP))
}

func (d *dnsNode) resume(p *netns.Process) {
	d.t.Helper()
	must(d.t, syscall.Kill(p.PID(), syscall.SIGCONT))
}

// end asks processes to end, all at the same time, and waits for them.
func (d *dnsNode) end(all ...*netns.Process) {
	d.t.Helper()
	var ending sync.WaitGroup
	for _, p := range all {
		ending.Go(func() {
			if err := p.Stop(d.ctx); err != nil {
				d.t.Error(err)
			}
		})
	}
	ending.Wait()
}
