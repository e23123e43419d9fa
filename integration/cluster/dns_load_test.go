package cluster

import (
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
)

// The name in questions all the time: of a closed headless Service, so that its addresses say who
// has answered. kube-dns has those of all units.
const (
	loadName     = "db.shop.svc.cluster.local"
	loadedBefore = "10.250.0.1 10.250.0.2" // by kube-dns
)

// loadAnswers are what the server of each unit answers.
func loadAnswers() map[string]string {
	return map[string]string{"beijing": "10.250.0.1", "guangzhou": "10.250.0.2"}
}

const (
	loadRate  = 750    // queries per second of all Pods
	loadLeast = 10_000 // queries of all Pods during a step
)

// startLoad starts to ask from the Pod on each machine of the units.
func (w *namesCluster) startLoad() *traffic.Load {
	local := map[*netns.Namespace]string{}
	var ways []traffic.Way
	for machine, unit := range unitOf() {
		from := w.clients[machine]
		local[from] = loadAnswers()[unit]
		ways = append(ways, traffic.Way{From: from, To: clusterDNS(), Name: machine})
	}
	q := &traffic.DNS{Name: dns.Fqdn(loadName), Judge: func(way traffic.Way, m *dns.Msg) traffic.Outcome {
		switch said(m) {
		case local[way.From]:
			return traffic.Local
		case loadedBefore:
			return traffic.Remote
		}
		return traffic.Wrong
	}}
	return traffic.Start(loadRate, q.Next, ways...)
}

// whileAsked does something while Pods ask, and prints what became of the queries. It is an error
// if an answer was wrong, or if more queries failed than are allowed.
func (w *namesCluster) whileAsked(what string, allowed int, do func()) traffic.Tally {
	w.t.Helper()
	before, err := w.kubeDNSPod.Overflows()
	must(w.t, err)
	begin := time.Now()
	l := w.startLoad()
	defer func() { _, _ = l.Stop() }()
	do()
	least := max(loadLeast, l.Sends()+loadRate) // what fails too late is seen
	wait.Until(w.t, "enough queries are due", func() error {
		n := l.Sends()
		return wait.Check(n >= least, "%d of %d are", n, least)
	})
	tally, err := l.Stop()
	must(w.t, err)
	after, err := w.kubeDNSPod.Overflows()
	must(w.t, err)
	w.t.Logf("%s: of %d queries %s; kube-dns did not read %d%s", what, tally.Sends, tally, after-before, tally.List(begin))
	if n := tally.Count[traffic.Wrong]; n > 0 {
		w.t.Errorf("%s: %d answers were wrong", what, n)
	}
	must(w.t, tally.NotMeasured(allowed))
	if n := len(tally.Failed); n > allowed {
		w.t.Errorf("%s: %d queries failed, want at most %d", what, n, allowed)
	}
	return tally
}
