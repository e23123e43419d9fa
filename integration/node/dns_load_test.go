package node

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/netns"

	"github.com/miekg/dns"
)

// The name that is asked for. Each server answers it with an address of its own.
const (
	askedName     = "who.shop.svc.cluster.local."
	answerOfNode  = "10.96.0.50" // what grid-dns answers: the cluster IP of the Service
	answerOfCloud = "192.0.2.53" // what the DNS of the cluster answers
)

// dnsOutcome is what became of one query.
type dnsOutcome uint32

const (
	dnsUnasked dnsOutcome = iota // it was not sent: the load ended before; the zero value
	dnsLost                      // no answer within answerLimit
	dnsRefused                   // the kernel says that no process listens there
	dnsWrong                     // another answer, or a failure
	dnsOfNode
	dnsOfCluster
)

// failed reports whether a query was sent and not answered well.
func (o dnsOutcome) failed() bool { return o > dnsUnasked && o < dnsOfNode }

// answerLimit is how long an answer may take: less than the five seconds after which a stub
// resolver asks again, so each lost query counts.
const answerLimit = 2 * time.Second

// keptSockets are those of one path that live as long as the load: a client that keeps its port. A
// quarter of the queries goes through them, each of the others has a socket of its own.
const keptSockets = 8

// dnsPath is who asks, and where.
type dnsPath struct {
	from *netns.Namespace
	to   netip.AddrPort
}

// dnsLoad asks at a fixed rate, on its paths in turn, until it is stopped.
type dnsLoad struct {
	rate     int
	fresh    bool // every query has a socket of its own
	paths    []dnsPath
	began    time.Time
	outcomes []atomic.Uint32 // by query
	sent     atomic.Int64    // all queries before this one were sent, but for a few of paths that are behind
	stopped  chan struct{}
	running  sync.WaitGroup
	failed   chan error
}

// maxQueries is more than a load asks.
const maxQueries = 500_000

func startDNSLoad(rate int, fresh bool, paths ...dnsPath) *dnsLoad {
	l := &dnsLoad{rate: rate, fresh: fresh, paths: paths, began: time.Now(), outcomes: make([]atomic.Uint32, maxQueries), stopped: make(chan struct{}), failed: make(chan error, len(paths))}
	for i, p := range paths {
		l.running.Go(func() {
			if err := p.from.Do(func() error { return l.send(p, i, len(paths)) }); err != nil {
				l.failed <- err
			}
		})
	}
	return l
}

// send sends every step-th query from the first one on. It runs in the namespace of the path.
func (l *dnsLoad) send(p dnsPath, first, step int) error {
	to := net.UDPAddrFromAddrPort(p.to)
	kept := make([]*keptSocket, keptSockets)
	for i := range kept {
		conn, err := net.DialUDP("udp", nil, to)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // nothing more is read
		kept[i] = &keptSocket{conn: conn, open: map[uint16]keptQuery{}}
		l.running.Go(func() { kept[i].receive(l) })
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i, turn := first, 0; i < maxQueries; i, turn = i+step, turn+1 {
		timer.Reset(time.Until(l.began.Add(time.Duration(i) * time.Second / time.Duration(l.rate))))
		select {
		case <-l.stopped:
			return l.finish(kept)
		case <-timer.C:
		}
		l.note(i, dnsLost) // until there is an answer
		if l.keeps(turn) {
			kept[turn/4%keptSockets].ask(i)
		} else if err := l.askOnce(to, i); err != nil {
			return err
		}
		l.sent.Store(int64(i + 1))
	}
	return fmt.Errorf("%d queries were asked, and more must not be", maxQueries)
}

// keeps says that a query of a path goes through a socket that lives on.
func (l *dnsLoad) keeps(turn int) bool { return !l.fresh && turn%4 == 0 }

// finish waits for the last answers to kept sockets.
func (l *dnsLoad) finish(kept []*keptSocket) error {
	end := time.Now().Add(answerLimit)
	for _, k := range kept {
		if err := k.conn.SetReadDeadline(end); err != nil {
			return err
		}
	}
	time.Sleep(time.Until(end)) // an answer may take that long
	return nil
}

// askOnce asks through a socket of its own, and has the answer noted.
func (l *dnsLoad) askOnce(to *net.UDPAddr, i int) error {
	conn, err := net.DialUDP("udp", nil, to)
	if err != nil {
		return err
	}
	l.running.Go(func() {
		defer conn.Close() //nolint:errcheck // nothing more is read
		l.note(i, exchangeDNS(conn, uint16(i)))
	})
	return nil
}

func (l *dnsLoad) note(i int, o dnsOutcome) { l.outcomes[i].Store(uint32(o)) }

// exchangeDNS sends one query and waits for its answer.
func exchangeDNS(conn net.Conn, id uint16) dnsOutcome {
	if err := conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return dnsLost
	}
	_, err := conn.Write(dnsQuery(id))
	answer := make([]byte, 1500)
	for err == nil {
		var n int
		if n, err = conn.Read(answer); err == nil {
			if got, o := judgeDNS(answer[:n]); got == id {
				return o
			}
		}
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return dnsRefused
	}
	return dnsLost
}

func dnsQuery(id uint16) []byte {
	query := new(dns.Msg).SetQuestion(askedName, dns.TypeA)
	query.Id = id
	text, err := query.Pack()
	if err != nil {
		panic(err) // a constant message
	}
	return text
}

// judgeDNS says to which query an answer belongs, and by whom it is.
func judgeDNS(text []byte) (uint16, dnsOutcome) {
	var answer dns.Msg
	if err := answer.Unpack(text); err != nil || len(answer.Answer) != 1 {
		return answer.Id, dnsWrong
	}
	if a, ok := answer.Answer[0].(*dns.A); ok {
		switch a.A.String() {
		case answerOfNode:
			return answer.Id, dnsOfNode
		case answerOfCloud:
			return answer.Id, dnsOfCluster
		}
	}
	return answer.Id, dnsWrong
}

// keptSocket is a socket with many queries.
type keptSocket struct {
	conn *net.UDPConn
	mu   sync.Mutex
	open map[uint16]keptQuery // by id
}

type keptQuery struct {
	index int
	sent  time.Time
}

func (k *keptSocket) ask(i int) {
	k.mu.Lock()
	k.open[uint16(i)] = keptQuery{i, time.Now()}
	k.mu.Unlock()
	// The first try may fail with what became of the query before.
	if _, err := k.conn.Write(dnsQuery(uint16(i))); err != nil {
		_, _ = k.conn.Write(dnsQuery(uint16(i)))
	}
}

// receive notes answers until the deadline that finish sets.
func (k *keptSocket) receive(l *dnsLoad) {
	text := make([]byte, 1500)
	for {
		n, err := k.conn.Read(text)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			continue
		case err != nil:
			return
		}
		id, o := judgeDNS(text[:n])
		k.mu.Lock()
		query, found := k.open[id]
		delete(k.open, id)
		k.mu.Unlock()
		if found && time.Since(query.sent) < answerLimit {
			l.note(query.index, o)
		}
	}
}

// stop ends the load, and counts.
func (l *dnsLoad) stop(t *testing.T) dnsFigures {
	t.Helper()
	close(l.stopped)
	l.running.Wait()
	select {
	case err := <-l.failed:
		t.Fatalf("asking: %v", err)
	default:
	}
	var outcomes []dnsOutcome
	failed := map[string]int{}
	for i := range int(l.sent.Load()) {
		outcomes = append(outcomes, dnsOutcome(l.outcomes[i].Load()))
		if outcomes[i].failed() {
			p := l.paths[i%len(l.paths)]
			failed[fmt.Sprintf("from %s to %s, on a kept socket: %v", p.from.Name, p.to, l.keeps(i/len(l.paths)))]++
		}
	}
	if len(failed) > 0 {
		t.Logf("failures by path: %v", failed)
	}
	return dnsFiguresOf(outcomes, l.rate)
}

// dnsFigures are what a load counted.
type dnsFigures struct {
	rate     int
	count    [dnsOfCluster + 1]int
	failures []int // the queries that were not answered well
}

func dnsFiguresOf(outcomes []dnsOutcome, rate int) dnsFigures {
	f := dnsFigures{rate: rate}
	for i, o := range outcomes {
		f.count[o]++
		if o.failed() {
			f.failures = append(f.failures, i)
		}
	}
	return f
}

// outside are the failures that are not within so many queries from the first one.
func (f dnsFigures) outside(queries int) int {
	n := 0
	for _, i := range f.failures {
		if i >= f.failures[0]+queries {
			n++
		}
	}
	return n
}

// outage is the time from the first failure to the last.
func (f dnsFigures) outage() time.Duration {
	if len(f.failures) == 0 {
		return 0
	}
	return time.Duration(f.failures[len(f.failures)-1]-f.failures[0]+1) * time.Second / time.Duration(f.rate)
}

// bySecond counts failures by second since the first one, such as " (0 s: 40, 12 s: 3)". Seconds
// without failures are left out.
func (f dnsFigures) bySecond() string {
	if len(f.failures) == 0 {
		return ""
	}
	count := map[int]int{}
	for _, i := range f.failures {
		count[(i-f.failures[0])/f.rate]++
	}
	var text []string
	for _, second := range slices.Sorted(maps.Keys(count)) {
		text = append(text, fmt.Sprintf("%d s: %d", second, count[second]))
	}
	return " (" + strings.Join(text, ", ") + ")"
}

func (f dnsFigures) String() string {
	c := f.count
	return fmt.Sprintf("%d answered by grid-dns, %d by the DNS of the cluster, %d lost, %d refused, %d wrong; from the first failure to the last %s%s",
		c[dnsOfNode], c[dnsOfCluster], c[dnsLost], c[dnsRefused], c[dnsWrong], f.outage().Round(time.Millisecond), f.bySecond())
}
