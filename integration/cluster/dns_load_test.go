package cluster

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
)

// The name that is asked for all the time: of a closed headless Service, so that its addresses say
// who has answered. kube-dns has those of all units.
const (
	loadName     = "db.shop.svc.cluster.local"
	loadedBefore = "10.250.0.1 10.250.0.2" // by kube-dns
)

// loadAnswers are what the server of each unit answers.
func loadAnswers() map[string]string {
	return map[string]string{"beijing": "10.250.0.1", "guangzhou": "10.250.0.2"}
}

const (
	// From one query of a Pod to the next. A delayed client asks twice as fast until it has caught
	// up: hundreds of queries at once would fill the socket of kube-dns.
	loadPeriod = 4 * time.Millisecond
	loadLimit  = 2 * time.Second // how long an answer may take: a resolver asks again after five
	loadKept   = 4               // every so many queries go through a socket that lives on
	loadMost   = 1 << 16         // queries of one Pod: as many as there are ids
	loadLeast  = 10_000          // queries of all Pods during a step
)

// queryFate is what became of a query.
type queryFate uint32

const (
	fateLost    queryFate = iota // the zero value: no answer in time
	fateRefused                  // no program listens there
	fateWrong                    // another answer
	fateLocal                    // by the server on the machine
	fateCluster                  // by kube-dns
)

// namesLoad asks from the Pod on each machine of the units, at a fixed rate.
type namesLoad struct {
	askers  []*loadAsker
	ended   chan struct{}
	running sync.WaitGroup
}

// loadAsker asks from one Pod.
type loadAsker struct {
	machine, local string
	sent           atomic.Int32
	when           [loadMost]atomic.Int64 // it was sent, since 1970
	fates          [loadMost]atomic.Uint32
	err            error // of the whole; read after the end
}

// startLoad starts to ask.
func (w *namesCluster) startLoad() *namesLoad {
	l := &namesLoad{ended: make(chan struct{})}
	for _, machine := range slices.Sorted(maps.Keys(unitOf())) {
		a := &loadAsker{machine: machine, local: loadAnswers()[unitOf()[machine]]}
		l.askers = append(l.askers, a)
		l.running.Go(func() { a.err = w.clients[machine].Do(func() error { return a.ask(l) }) })
	}
	return l
}

// ask runs in the network of the Pod.
func (a *loadAsker) ask(l *namesLoad) error {
	kept, err := net.Dial("udp", clusterDNS().String())
	if err != nil {
		return err
	}
	defer func() { _ = kept.Close() }()
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { a.read(kept) })
	began := time.Now()
	var next time.Time
	for id := range loadMost {
		if due := began.Add(time.Duration(id) * loadPeriod); due.After(next) {
			next = due
		}
		select {
		case <-l.ended:
			return kept.SetReadDeadline(time.Now().Add(loadLimit))
		case <-time.After(time.Until(next)):
		}
		next = time.Now().Add(loadPeriod / 2)
		conn := kept
		if id%loadKept > 0 {
			if conn, err = net.Dial("udp", clusterDNS().String()); err == nil {
				err = conn.SetReadDeadline(time.Now().Add(loadLimit))
			}
			if err != nil {
				return errors.Join(err, kept.SetReadDeadline(time.Now()))
			}
			reading.Go(func() { a.readOnce(conn) })
		}
		a.send(conn, uint16(id))
	}
	return errors.Join(fmt.Errorf("more than %d queries were to be asked", loadMost), kept.SetReadDeadline(time.Now()))
}

// send sends a query. The first try of a socket may fail with what became of the query before.
func (a *loadAsker) send(conn net.Conn, id uint16) {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(loadName), dns.TypeA)
	m.Id = id
	text, err := m.Pack()
	a.when[id].Store(time.Now().UnixNano())
	if err == nil {
		if _, err = conn.Write(text); errors.Is(err, syscall.ECONNREFUSED) {
			_, err = conn.Write(text)
		}
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		a.fates[id].Store(uint32(fateRefused))
	}
	a.sent.Store(int32(id) + 1)
}

// readOnce reads the answer to the only query of a socket.
func (a *loadAsker) readOnce(conn net.Conn) {
	a.read(conn)
	_ = conn.Close()
}

// read reads answers until the deadline, or until the first one that fails otherwise.
func (a *loadAsker) read(conn net.Conn) {
	text := make([]byte, 1500)
	for {
		n, err := conn.Read(text)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // its query counts as lost
		}
		var m dns.Msg
		if err != nil || m.Unpack(text[:n]) != nil {
			return
		}
		if took := time.Now().UnixNano() - a.when[m.Id].Load(); took < loadLimit.Nanoseconds() {
			a.fates[m.Id].Store(uint32(a.judge(&m)))
		}
	}
}

func (a *loadAsker) judge(m *dns.Msg) queryFate {
	switch said(m) {
	case a.local:
		return fateLocal
	case loadedBefore:
		return fateCluster
	}
	return fateWrong
}

// unanswered says when those queries were sent that were lost; "" = none was.
func (a *loadAsker) unanswered() string {
	var first, last int64
	kept := 0
	for id := range a.sent.Load() {
		if queryFate(a.fates[id].Load()) != fateLost {
			continue
		}
		last = a.when[id].Load()
		if first == 0 {
			first = last
		}
		if id%loadKept == 0 {
			kept++
		}
	}
	if first == 0 {
		return ""
	}
	since := func(at int64) time.Duration { return time.Duration(at - a.when[0].Load()).Round(time.Millisecond) }
	return fmt.Sprintf("; lost from %s to %s, %d of them through the socket that lives on", since(first), since(last), kept)
}

// asked is how many queries all Pods have sent.
func (l *namesLoad) asked() (n int) {
	for _, a := range l.askers {
		n += int(a.sent.Load())
	}
	return n
}

// loadFigures is how many queries had each fate.
type loadFigures [fateCluster + 1]int

func (f loadFigures) String() string {
	return fmt.Sprintf("%d answered on the machine, %d by kube-dns, %d lost, %d refused, %d wrong",
		f[fateLocal], f[fateCluster], f[fateLost], f[fateRefused], f[fateWrong])
}

// failed is how many queries were not answered as they should.
func (f loadFigures) failed() int { return f[fateLost] + f[fateRefused] + f[fateWrong] }

// whileAsked does something while Pods ask, and prints what became of the queries: an error if more
// than some of them failed.
func (w *namesCluster) whileAsked(what string, allowed int, do func()) (sum loadFigures) {
	w.t.Helper()
	before, err := w.kubeDNSPod.Overflows()
	w.must(err)
	l := w.startLoad()
	end := sync.OnceFunc(func() { close(l.ended); l.running.Wait() })
	defer end()
	do()
	least := max(loadLeast, l.asked()+len(l.askers)*int(time.Second/loadPeriod)) // what fails too late is seen
	wait.Until(w.t, "enough queries are asked", func() error {
		if n := l.asked(); n < least {
			return fmt.Errorf("%d of %d are", n, least)
		}
		return nil
	})
	end()
	for _, a := range l.askers {
		w.must(a.err)
		var f loadFigures
		for id := range a.sent.Load() {
			f[a.fates[id].Load()]++
		}
		w.t.Logf("%s: %s: of %d queries %s%s", what, a.machine, a.sent.Load(), f, a.unanswered())
		for i, n := range f {
			sum[i] += n
		}
	}
	after, err := w.kubeDNSPod.Overflows()
	w.must(err)
	w.t.Logf("%s: of %d queries %s; kube-dns did not read %d", what, l.asked(), sum, after-before)
	if n := sum.failed(); n > allowed {
		w.t.Errorf("%s: %d queries failed, want at most %d", what, n, allowed)
	}
	return sum
}
