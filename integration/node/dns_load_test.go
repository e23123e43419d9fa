package node

import (
	"fmt"
	"time"

	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
)

// The name in questions, of a closed headless Service. Each server answers it with an address of
// its own.
const (
	askedName     = "who.shop.svc.cluster.local."
	answerOfNode  = "10.0.0.70"  // what grid-dns answers: the endpoint of this unit
	answerOfOther = "10.0.0.139" // what no server may answer: the endpoint of another unit
	answerOfCloud = "192.0.2.53" // what the DNS of the cluster answers
)

// The outcomes of queries: grid-dns is the server of the Node.
const (
	dnsRefused   = traffic.Refused
	dnsOfNode    = traffic.Local
	dnsOfCluster = traffic.Remote
)

// dnsQuestion returns the question that Pods ask all the time.
func dnsQuestion() *traffic.DNS {
	return &traffic.DNS{Name: askedName, Judge: func(_ traffic.Way, m *dns.Msg) traffic.Outcome {
		if len(m.Answer) != 1 {
			return traffic.Wrong
		}
		if a, ok := m.Answer[0].(*dns.A); ok {
			switch a.A.String() {
			case answerOfNode:
				return dnsOfNode
			case answerOfCloud:
				return dnsOfCluster
			}
		}
		return traffic.Wrong
	}}
}

// startLoad starts to ask. The load ends with the test at the latest.
func (d *dnsNode) startLoad(rate int, fresh bool, ways []traffic.Way) {
	q := dnsQuestion()
	q.Fresh = fresh
	load := traffic.Start(rate, q.Next, ways...)
	d.t.Cleanup(func() { _, _ = load.Stop() })
	d.load, d.rate = load, rate
}

// stopLoad ends the load, and prints what became of its queries, with times since the fault.
func (d *dnsNode) stopLoad(fault time.Time) traffic.Tally {
	d.t.Helper()
	tally, err := d.load.Stop()
	must(d.t, err)
	d.t.Logf("of %d queries %s; %d datagrams came faster than programs read them%s", tally.Sends, tally, d.overflows(), tally.List(fault))
	return tally
}

// pass waits until as many queries were due as in some seconds.
func (d *dnsNode) pass(seconds int) {
	d.t.Helper()
	d.await(d.load.Sends() + seconds*d.rate)
}

// await waits until a number of queries were due.
func (d *dnsNode) await(queries int) {
	d.t.Helper()
	wait.Until(d.t, fmt.Sprintf("%d queries are due", queries), func() error {
		sends := d.load.Sends()
		return wait.Check(sends >= queries, "%d are", sends)
	})
}
