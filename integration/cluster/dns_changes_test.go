package cluster

import (
	"context"
	"fmt"
	"maps"
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

// dnsRace is how long after it was made a change was in the answers.
type dnsRace struct{ ours, theirs time.Duration }

// changes makes changes, and asks the server on a machine and kube-dns itself in turn until both
// know them.
func (w *namesCluster) changes() {
	w.t.Helper()
	const each = 25
	_, err := w.Client.CoreV1().Services(metav1.NamespaceDefault).Create(w.t.Context(), labelled(), metav1.CreateOptions{})
	w.must(err)
	byKind, all := map[string][]dnsRace{}, []dnsRace{}
	for n := range each {
		for _, c := range w.dnsChanges(n) {
			r := w.race(c)
			byKind[c.kind], all = append(byKind[c.kind], r), append(all, r)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		ours, theirs := knownAfter(byKind[kind], 50)
		w.t.Logf("%-10s half of %d known here within %s, to kube-dns within %s", kind, len(byKind[kind]), ours, theirs)
	}
	for _, q := range []struct {
		percent int
		most    float64
	}{{50, mostAtHalf}, {90, mostAtNineTenths}} {
		ours, theirs := knownAfter(all, q.percent)
		ratio := float64(ours) / float64(theirs)
		w.t.Logf("%d%% of %d changes known here within %s, to kube-dns within %s: %.2f", q.percent, len(all), ours, theirs, ratio)
		if ratio > q.most {
			w.t.Errorf("changes are in the answers later than in those of kube-dns: %d%% of them after %.2f times as long (want %.2f at most)", q.percent, ratio, q.most)
		}
	}
	behind := make([]time.Duration, 0, len(all))
	for _, r := range all {
		behind = append(behind, r.ours-r.theirs)
	}
	slices.Sort(behind)
	median, worst := behind[len(behind)/2], behind[len(behind)-1]
	w.t.Logf("later than kube-dns by %s in half of the cases, from %s to %s", median, behind[0], worst)
	if median > medianLag || worst > worstLag {
		w.t.Errorf("changes are in the answers later than in those of kube-dns: by %s in half of the cases (want %s), at most %s (want %s)", median, medianLag, worst, worstLag)
	}
}

// Both servers learn a change by a watch of their own, on two processors that the whole cluster
// shares: which of them hears first is chance. Ours has one hop more, over a socket.
const (
	mostAtHalf       = 1.25
	mostAtNineTenths = 1.5
	medianLag        = 10 * time.Millisecond
	worstLag         = 500 * time.Millisecond
)

// knownAfter is within what time so many percent of changes were known.
func knownAfter(races []dnsRace, percent int) (ours, theirs time.Duration) {
	at := func(known func(dnsRace) time.Duration) time.Duration {
		all := make([]time.Duration, 0, len(races))
		for _, r := range races {
			all = append(all, known(r))
		}
		slices.Sort(all)
		return all[min(len(all)*percent/100, len(all)-1)].Round(10 * time.Microsecond)
	}
	return at(func(r dnsRace) time.Duration { return r.ours }), at(func(r dnsRace) time.Duration { return r.theirs })
}

// apart is for how long both are asked after they know a change: a daemon that has just decided
// about names rests for up to 50 ms, so that a flood of changes costs little.
const apart = 100 * time.Millisecond

// raceLimit is when a change is lost: it waits for the next one, or for the next heartbeat.
const raceLimit = 5 * time.Second

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
	ctx, cancel := context.WithTimeout(w.t.Context(), raceLimit)
	defer cancel()
	for r.ours == 0 || r.theirs == 0 || time.Since(begin) < max(r.ours, r.theirs)+apart {
		if ctx.Err() != nil {
			w.t.Fatalf("%s of %s is not known after %s: here %s, to kube-dns %s (0s = it is not)", c.kind, c.name, raceLimit, r.ours, r.theirs)
		}
		if even {
			ask(clusterDNS(), &r.ours)
			ask(w.kubeDNS, &r.theirs)
		} else {
			ask(w.kubeDNS, &r.theirs)
			ask(clusterDNS(), &r.ours)
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
