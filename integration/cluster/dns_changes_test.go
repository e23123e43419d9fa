package cluster

import (
	"fmt"
	"gridproxy/integration/env/wait"
	"net/netip"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// dnsChange is a change of an endpoint, and what a name leads to afterwards.
type dnsChange struct {
	kind string
	do   func()
	name string
	want string
}

// changes makes changes, and waits until the server on a machine and kube-dns itself know each.
func (w *namesCluster) changes() {
	w.t.Helper()
	_, err := w.Client.CoreV1().Services(metav1.NamespaceDefault).Create(w.t.Context(), labelled(), metav1.CreateOptions{})
	must(w.t, err)
	for _, c := range w.dnsChanges() {
		c.do()
		for _, server := range []netip.AddrPort{clusterDNS(), w.kubeDNS} {
			wait.Until(w.t, fmt.Sprintf("%s: %s is %s at %s", c.kind, c.name, c.want, server), func() error {
				m, err := query(w.clients["bj-1"], "udp", server, c.name, dns.TypeA)
				if err == nil && said(m) != c.want {
					err = fmt.Errorf("it is %s", said(m))
				}
				return err
			})
		}
	}
}

// dnsChanges are changes of testdata/dns_table.yaml's Service that is open, and of a Pod's label.
func (w *namesCluster) dnsChanges() []dnsChange {
	const name, first, second, moved = "changing.shop.svc.cluster.local", "10.250.4.0", "10.250.5.0", "10.250.6.0"
	set := func(endpoints ...discoveryv1.Endpoint) func() {
		return func() {
			api := w.Client.DiscoveryV1().EndpointSlices("shop")
			slice, err := api.Get(w.t.Context(), "changing-4", metav1.GetOptions{})
			must(w.t, err)
			slice.Endpoints = endpoints
			_, err = api.Update(w.t.Context(), slice, metav1.UpdateOptions{})
			must(w.t, err)
		}
	}
	at := func(addr, node string, ready bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{addr}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	}
	pod := w.clients["bj-2"]
	label := func(value string) func() {
		return func() {
			_, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).Patch(w.t.Context(), pod.Name, types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"part":"`+value+`"}}}`), metav1.PatchOptions{})
			must(w.t, err)
		}
	}
	return []dnsChange{
		{"scaled", set(at(first, "bj-1", true), at(second, "gz-1", true)), name, first + " " + second},
		{"moved", set(at(first, "bj-1", true), at(moved, "bj-2", true)), name, first + " " + moved},
		{"unready", set(at(first, "bj-1", true), at(moved, "bj-2", false)), name, first},
		{"ready", set(at(first, "bj-1", true), at(moved, "bj-2", true)), name, first + " " + moved},
		{"relabelled", label("of-it"), labelledName, w.clients["bj-2"].Addrs[0].String()},
		{"relabelled", label("no-more"), labelledName, "NXDOMAIN"},
	}
}

// changeUnit moves an endpoint, and then a Node, from one unit to the other and back. kube-dns
// knows no units: only what is answered at the end is compared.
func (w *namesCluster) changeUnit() {
	w.t.Helper()
	const all, ordinal = "db.shop.svc.cluster.local", "db-1.db.shop.svc.cluster.local"
	move := func(to string) {
		w.MustKubectl(w.t, "patch", "endpointslice", "db-4", "--namespace=shop", "--type=json",
			`--patch=[{"op":"replace","path":"/endpoints/1/nodeName","value":"`+to+`"}]`)
	}
	relabel := func(unit string) { w.MustKubectl(w.t, "label", "node", "gz-1", "--overwrite", "location="+unit) }
	at := func(beijing, guangzhou string) {
		w.becomes("bj-1", ordinal, beijing)
		w.becomes("gz-1", all, guangzhou)
	}
	move("bj-2")
	at("10.250.0.2", "NXDOMAIN")
	move("gz-1")
	at("NXDOMAIN", "10.250.0.2")
	relabel("beijing")
	at("10.250.0.2", "10.250.0.1 10.250.0.2")
	relabel("guangzhou")
	at("NXDOMAIN", "10.250.0.2")
}

const labelledName = "labelled.default.svc.cluster.local"

// labelled is a Service of the Pods with a label.
func labelled() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "labelled", Namespace: metav1.NamespaceDefault},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"part": "of-it"}, Ports: []corev1.ServicePort{{Name: "http", Port: 8080}},
		},
	}
}
