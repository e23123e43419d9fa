package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/document"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namesCluster is a cluster with the chart, and the real CoreDNS as kube-dns on a Node in the
// cloud. Outside of the cluster there is a DNS server that kube-dns asks.
type namesCluster struct {
	*machines.Cluster
	t *testing.T

	shell      document.Shell
	clients    map[string]*netns.Namespace // the Pod on each machine
	kubeDNS    netip.AddrPort              // the Pod
	kubeDNSPod *netns.Namespace
	sent       map[string]int // queries that the server on a machine has to answer
}

// The machines of the units, one first of each, and the one in the cloud.
const cloud = "cloud-1"

func unitOf() map[string]string {
	return map[string]string{"bj-1": "beijing", "bj-2": "beijing", "gz-1": "guangzhou"}
}

func newNamesCluster(t *testing.T) *namesCluster {
	t.Helper()
	w := &namesCluster{t: t, clients: map[string]*netns.Namespace{}, sent: map[string]int{}}
	specs := []machines.Spec{{Name: cloud}}
	for _, name := range slices.Sorted(maps.Keys(unitOf())) {
		zone := "zone"
		if unitOf()[name] != "beijing" {
			zone = "a"
		}
		specs = append(specs, machines.Spec{Name: name, Labels: map[string]string{"location": unitOf()[name], "zone": zone}})
	}
	w.Cluster = machines.ForTest(t, machines.Options{
		Machines: specs, Images: []machines.Image{machines.ImageForTest(t, machines.CoreDNS), machines.ImageForTest(t, machines.Gridproxy)}, Manifests: []string{source + "/deploy/crds"},
	})
	w.answerOutside()
	w.Apply(t, w.KubeDNS(cloud, w.Outside().Addr(netns.IPv4)))
	w.applyFiles("testdata/dns_clients.yaml", "testdata/dns_table.yaml")
	w.install()
	w.MustKubectl(t, "--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	w.MustKubectl(t, "rollout", "status", "daemonset/client", "--timeout=120s")
	w.findPods()
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *namesCluster) applyFiles(files ...string) {
	w.t.Helper()
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(w.t, err)
		w.Apply(w.t, string(text))
	}
}

// outsideTTL is that of every name outside of the cluster.
const outsideTTL = 1

// answerOutside answers every A query with one address, beside the machines.
func (w *namesCluster) answerOutside() {
	w.t.Helper()
	var conn net.PacketConn
	must(w.t, w.Outside().Do(func() (err error) {
		conn, err = net.ListenPacket("udp", netip.AddrPortFrom(w.Outside().Addr(netns.IPv4), 53).String())
		return err
	}))
	answer := func(to dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: outsideTTL}, A: net.IPv4(192, 0, 2, 1),
			}}
		}
		_ = to.WriteMsg(m) // whoever asked may have gone
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(answer)}
	go func() { _ = server.ActivateAndServe() }()
	w.t.Cleanup(func() { _ = server.Shutdown() })
}

func (w *namesCluster) findPods() {
	w.t.Helper()
	list, err := w.Client.CoreV1().Pods("").List(w.t.Context(), metav1.ListOptions{})
	must(w.t, err)
	for _, p := range list.Items {
		switch {
		case p.Labels["app"] == "client":
			pod, err := w.Pod(w.t.Context(), p.Namespace, p.Name)
			must(w.t, err)
			w.clients[p.Spec.NodeName] = pod
		case p.Labels["k8s-app"] == "kube-dns":
			w.kubeDNS = netip.AddrPortFrom(netip.MustParseAddr(p.Status.PodIP), 53)
			w.kubeDNSPod, err = w.Pod(w.t.Context(), p.Namespace, p.Name)
			must(w.t, err)
			must(w.t, w.kubeDNSPod.GrowUDPBuffers(kubeDNSBuffer))
		}
	}
	if len(w.clients) != len(w.Machines()) || !w.kubeDNS.IsValid() {
		w.t.Fatalf("there are %d clients, and kube-dns is at %v", len(w.clients), w.kubeDNS)
	}
}

// kubeDNSBuffer holds the queries of all clients for as long as an answer may take, so that none is
// lost because kube-dns has no processor time: its threads were seen to be runnable for half a
// second while programs of all machines started. By default it holds some 280 queries.
const kubeDNSBuffer = 8 << 20

// clusterDNS is where Pods ask: the cluster IP of kube-dns.
func clusterDNS() netip.AddrPort { return netip.AddrPortFrom(machines.DNSAddrs()[0], 53) }

// isLocal waits until queries from a machine's Pod are answered by the server on it. Those that are
// answered while it waits are counted, and not yet expected.
func (w *namesCluster) isLocal(machine string) {
	w.t.Helper()
	wait.Until(w.t, "queries of "+machine+" are answered there", func() error {
		before, err := w.counted(machine)
		if err != nil {
			return err
		}
		if _, err := query(w.clients[machine], "udp", clusterDNS(), "kubernetes.default.svc.cluster.local", dns.TypeA); err != nil {
			return err
		}
		after, err := w.counted(machine)
		return errors.Join(err, wait.Check(after == before+1, "of one query %d arrived", after-before))
	})
	// For a second kube-dns still answers flows that are under way. A query that takes the port
	// of such a flow goes there too.
	wait.Until(w.t, "no flow leads from "+machine+" to kube-dns", func() error {
		return w.Machine(machine).Namespace.FlowElsewhere(machines.DNSAddrs(), localDNS())
	})
}

// localDNS is where the servers of the machines answer.
func localDNS() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")}
}

// queryLimit is how long an answer may take on a busy machine.
const queryLimit = 5 * time.Second

func query(from *netns.Namespace, network string, server netip.AddrPort, name string, qtype uint16) (*dns.Msg, error) {
	conn, err := from.Dial(context.Background(), network, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	client := dns.Client{Timeout: queryLimit}
	m, _, err := client.ExchangeWithConn(new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype), &dns.Conn{Conn: conn})
	if err != nil {
		return nil, fmt.Errorf("asking %s for %s: %w", server, name, err)
	}
	return m, nil
}

// said is an answer in a word: its records without names and times, or why it has no records.
func said(m *dns.Msg) string {
	var records []string
	for _, r := range m.Answer {
		switch r := r.(type) {
		case *dns.A:
			records = append(records, r.A.String())
		case *dns.AAAA:
			records = append(records, r.AAAA.String())
		case *dns.SRV:
			records = append(records, fmt.Sprintf("%s:%d", r.Target, r.Port))
		case *dns.PTR:
			records = append(records, r.Ptr)
		case *dns.CNAME:
			records = append(records, "alias of "+r.Target)
		default:
			records = append(records, r.String())
		}
	}
	slices.Sort(records)
	switch {
	case m.Rcode != dns.RcodeSuccess:
		return dns.RcodeToString[m.Rcode]
	case len(records) == 0:
		return "no data"
	}
	return strings.Join(slices.Compact(records), " ")
}

// asks asks from a machine's Pod as every Pod does, and counts the query.
func (w *namesCluster) asks(machine, name string, qtype uint16) (string, error) {
	m, err := query(w.clients[machine], "udp", clusterDNS(), name, qtype)
	if err != nil {
		return "", err
	}
	w.sent[machine]++
	return said(m), nil
}
