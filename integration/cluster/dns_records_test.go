package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names of the Grid of testdata/dns_records.yaml.
const (
	recordsName = "records-0.records-svc.default.svc.cluster.local"
	otherDomain = "edge.example"
)

// records is about what SuperEdge's hosts file did to the names of Grids (D-03): Pods that are not
// ready or that end had records, addresses of IPv6 had none, a deleted Grid kept its own for half a
// minute, the domain was cluster.local whatever the cluster's is, and a reader could find half of a
// file.
func (w *namesCluster) records() {
	w.t.Helper()
	w.applyFiles("testdata/dns_records.yaml")
	pods := map[string]string{"bj-1": "records-zone-0", "gz-1": "records-a-0"}
	for machine, pod := range pods {
		w.unreadyRecord(machine, pod)
	}
	w.endingRecord("gz-1", pods["gz-1"])
	w.deletedRecord("bj-1")
	w.tornRecords("bj-1")
	w.domainOfRecords()
}

// unreadyRecord: a Pod that runs and is not ready has no name; when it is ready, it has both of its
// addresses.
func (w *namesCluster) unreadyRecord(machine, pod string) {
	w.t.Helper()
	wait.Until(w.t, pod+" is there", func() error {
		_, err := w.Kubectl("get", "pod", pod)
		return err
	})
	w.MustKubectl(w.t, "wait", "--for=condition=ContainersReady", "pod/"+pod, "--timeout=120s")
	addrs := w.addresses(pod)
	wait.Until(w.t, pod+" is an endpoint that is not ready", func() error {
		out, err := w.Kubectl("get", "endpointslices", "--selector=kubernetes.io/service-name=records-svc",
			"-o", `jsonpath={range .items[*].endpoints[*]}{.addresses[0]}={.conditions.ready} {end}`)
		for _, addr := range addrs {
			if err == nil && !strings.Contains(out, addr+"=false") {
				err = fmt.Errorf("%s is not among %s", addr, out)
			}
		}
		return err
	})
	for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		must(w.t, w.check(machine, expectedName{name: recordsName, qtype: qtype, beijing: "NXDOMAIN"}))
	}
	w.MustKubectl(w.t, "patch", "pod", pod, "--subresource=status", `--patch={"status":{"conditions":[{"type":"example.com/served","status":"True"}]}}`)
	w.becomes(machine, recordsName, addrs[0])
	wait.Until(w.t, pod+" has its name in IPv6", func() error {
		return w.check(machine, expectedName{name: recordsName, qtype: dns.TypeAAAA, beijing: addrs[1]})
	})
}

// addresses are those of a Pod, IPv4 first.
func (w *namesCluster) addresses(pod string) []string {
	w.t.Helper()
	p, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(w.t.Context(), pod, metav1.GetOptions{})
	must(w.t, err)
	var addrs []netip.Addr
	for _, ip := range p.Status.PodIPs {
		addrs = append(addrs, netip.MustParseAddr(ip.IP))
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	var texts []string
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	if len(addrs) != 2 || addrs[0].Is6() || addrs[1].Is4() {
		w.t.Fatalf("%s has the addresses %v", pod, addrs)
	}
	return texts
}

// endingRecord: a Pod that was asked to end has no name any more while it still runs.
func (w *namesCluster) endingRecord(machine, pod string) {
	w.t.Helper()
	w.MustKubectl(w.t, "delete", "pod", pod, "--wait=false")
	w.becomes(machine, recordsName, "NXDOMAIN")
	p, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(w.t.Context(), pod, metav1.GetOptions{})
	must(w.t, err)
	running := p.Status.Phase == corev1.PodRunning && p.Status.ContainerStatuses[0].State.Running != nil
	if p.DeletionTimestamp == nil || !running {
		w.t.Errorf("%s should be about to end: %v", pod, p.Status)
	}
}

// deletedRecord: the name of a deleted Grid is gone at once, and not after half a minute.
func (w *namesCluster) deletedRecord(machine string) {
	w.t.Helper()
	begin := time.Now()
	w.MustKubectl(w.t, "delete", "statefulsetgrid", "records", "--wait=false")
	w.becomes(machine, recordsName, "NXDOMAIN")
	w.t.Logf("the name of a deleted Grid is gone after %s", time.Since(begin).Round(time.Millisecond))
}

// tornRecords: a server that finds half of its file answers as before.
func (w *namesCluster) tornRecords(machine string) {
	w.t.Helper()
	m := w.Machine(machine)
	size, err := m.Run(w.t.Context(), nil, "stat", "--format=%s", namesFile)
	must(w.t, err)
	var bytes int
	_, err = fmt.Sscan(string(size), &bytes)
	must(w.t, err)
	_, err = m.Run(w.t.Context(), nil, "truncate", fmt.Sprintf("--size=%d", bytes/2), namesFile)
	must(w.t, err)
	before, err := w.processID(machine, serverCommand)
	must(w.t, err)
	_, err = m.Run(w.t.Context(), nil, "kill", "-9", before)
	must(w.t, err)
	w.runsAnew(machine, serverCommand, before)
	w.isLocal(machine)
	w.tableAt("after half of a file", machine)
}

// domainOfRecords: names have the domain that the kubelets have.
func (w *namesCluster) domainOfRecords() {
	w.t.Helper()
	grid := manualGrid + "-1.servicegrid-demo-svc.default.svc."
	w.upgrades("--set dns.clusterDomain=" + otherDomain)
	for machine, unit := range unitOf() {
		w.becomes(machine, grid+otherDomain, w.address(manualGrid+"-"+unit+"-1"))
		must(w.t, w.check(machine, expectedName{name: "db.shop.svc." + otherDomain, qtype: dns.TypeA, beijing: "10.250.0.1", guangzhou: "10.250.0.2"}))
	}
	w.upgrades("--set dns.clusterDomain=cluster.local")
	for machine, unit := range unitOf() {
		w.becomes(machine, grid+"cluster.local", w.address(manualGrid+"-"+unit+"-1"))
		w.isLocal(machine)
	}
}
