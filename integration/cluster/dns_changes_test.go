package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

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

// dnsRace is how a change became visible.
type dnsRace struct {
	ours, theirs time.Duration // since the change was made
	late, rounds int           // rounds of queries in which only kube-dns knew; all
}

// changes makes changes, and asks the server on a machine and kube-dns itself in turn until both
// know them.
func (w *namesCluster) changes() {
	w.t.Helper()
	const each = 5
	_, err := w.Client.CoreV1().Services(metav1.NamespaceDefault).Create(w.t.Context(), labelled(), metav1.CreateOptions{})
	w.must(err)
	byKind := map[string][]dnsRace{}
	for n := range each {
		for _, c := range w.dnsChanges(n) {
			byKind[c.kind] = append(byKind[c.kind], w.race(c))
		}
	}
	late := 0
	var behind []time.Duration
	for kind, races := range byKind {
		for _, r := range races {
			w.t.Logf("%-10s known here after %s, to kube-dns after %s; %d of %d rounds late",
				kind, r.ours.Round(time.Millisecond/10), r.theirs.Round(time.Millisecond/10), r.late, r.rounds)
			behind = append(behind, r.ours-r.theirs)
			late += r.late
		}
	}
	slices.Sort(behind)
	median, worst := behind[len(behind)/2], behind[len(behind)-1]
	w.t.Logf("%d changes: later than kube-dns by %s in half of the cases, from %s to %s; %d rounds late", len(behind), median, behind[0], worst, late)
	if median > medianLag || worst > worstLag {
		w.t.Errorf("changes are in the answers later than in those of kube-dns: by %s in half of the cases (want %s), at most %s (want %s)", median, medianLag, worst, worstLag)
	}
}

// Both servers learn a change by a watch of their own, on two busy processors: which of them hears
// first is chance, and ours has one more hop, over a socket. No client notices so little.
const (
	medianLag = 10 * time.Millisecond
	worstLag  = 500 * time.Millisecond
)

// apart is for how long both are asked after they know a change: a daemon takes a decision about
// names 50 ms after the one before at the earliest, so that a flood of changes costs little.
const apart = 100 * time.Millisecond

// race makes a change and follows it.
func (w *namesCluster) race(c dnsChange) dnsRace {
	w.t.Helper()
	var r dnsRace
	begin := time.Now()
	done := make(chan struct{})
	go func() { defer close(done); c.do() }()
	client, even := w.clients["bj-1"], false
	ask := func(server netip.AddrPort, known *time.Duration) {
		m, err := query(client, "udp", server, c.name, dns.TypeA)
		w.must(err)
		if *known == 0 && said(m) == c.want {
			*known = time.Since(begin)
		}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for r.ours == 0 || r.theirs == 0 || time.Since(begin) < max(r.ours, r.theirs)+apart {
		if ctx.Err() != nil {
			w.t.Fatalf("%s of %s is not known after a minute: here %s, to kube-dns %s", c.kind, c.name, r.ours, r.theirs)
		}
		if even {
			ask(clusterDNS(), &r.ours)
			ask(w.kubeDNS, &r.theirs)
		} else {
			ask(w.kubeDNS, &r.theirs)
			ask(clusterDNS(), &r.ours)
		}
		if r.theirs == 0 || r.ours == 0 {
			r.rounds++
		}
		if r.theirs > 0 && r.ours == 0 {
			r.late++
		}
		even = !even
	}
	<-done
	return r
}

// dnsChanges are changes of testdata/dns_table.yaml's Service that is open, and of a Pod's label.
func (w *namesCluster) dnsChanges(n int) []dnsChange {
	const name = "changing.shop.svc.cluster.local"
	first, second, moved := fmt.Sprintf("10.250.4.%d", n), fmt.Sprintf("10.250.5.%d", n), fmt.Sprintf("10.250.6.%d", n)
	set := func(endpoints ...discoveryv1.Endpoint) func() {
		return func() {
			api := w.Client.DiscoveryV1().EndpointSlices("shop")
			slice, err := api.Get(w.t.Context(), "changing-4", metav1.GetOptions{})
			if err == nil {
				slice.Endpoints = endpoints
				_, err = api.Update(w.t.Context(), slice, metav1.UpdateOptions{})
			}
			if err != nil {
				w.t.Error(err)
			}
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
			if err != nil {
				w.t.Error(err)
			}
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
