package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// dnsAnswerTimeout is less than the five seconds after which a stub resolver asks again, so each
// lost query counts.
const dnsAnswerTimeout = 2 * time.Second

// A client that keeps its port: one in keptShare queries goes through one of the sockets that a way
// has as long as the load lasts. Each other query has a socket of its own.
const (
	keptSockets = 8
	keptShare   = 4
)

// DNS is a question for the addresses of a name, over UDP.
type DNS struct {
	Name  string // with a final dot
	Judge func(w Way, answer *dns.Msg) Outcome
	Fresh bool // every query has a socket of its own
}

// Once asks once, on a socket of its own.
func (q DNS) Once(ctx context.Context, w Way) (Outcome, error) {
	conn, err := w.From.Dial(ctx, "udp", w.To)
	if err != nil {
		return Lost, err
	}
	defer conn.Close() //nolint:errcheck // nothing more is read
	return (&dnsAsker{DNS: q, way: w}).exchange(conn, 1)
}

// Open returns an Asker for a Load.
func (q DNS) Open(w Way) (Asker, error) {
	a := &dnsAsker{DNS: q, way: w}
	for range keptSockets {
		conn, err := a.dial()
		if err != nil {
			a.Close()
			return nil, err
		}
		k := &keptSocket{conn: conn, open: map[uint16]keptQuery{}}
		a.kept = append(a.kept, k)
		a.reading.Go(func() { a.receive(k) })
	}
	return a, nil
}

// dnsAsker asks on one way.
type dnsAsker struct {
	DNS
	way     Way
	asked   int
	kept    []*keptSocket
	reading sync.WaitGroup
}

func (a *dnsAsker) dial() (*net.UDPConn, error) {
	return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a.way.To))
}

// Ask sends a query.
func (a *dnsAsker) Ask(done func(Outcome, error)) error {
	a.asked++
	id := uint16(a.asked)
	if !a.Fresh && a.asked%keptShare == 0 {
		return a.ask(a.kept[a.asked/keptShare%keptSockets], id, done)
	}
	conn, err := a.dial()
	if err != nil {
		return err
	}
	a.reading.Go(func() {
		defer conn.Close() //nolint:errcheck // nothing more is read
		done(a.exchange(conn, id))
	})
	return nil
}

// Close waits for the last answers.
func (a *dnsAsker) Close() {
	for _, k := range a.kept {
		_ = k.conn.SetReadDeadline(time.Now().Add(dnsAnswerTimeout)) // it is open
	}
	a.reading.Wait()
	for _, k := range a.kept {
		_ = k.conn.Close() // nothing more is read
	}
}

// query returns a query with an ID.
func (q DNS) query(id uint16) ([]byte, error) {
	m := new(dns.Msg).SetQuestion(q.Name, dns.TypeA)
	m.Id = id
	return m.Pack()
}

// judge returns the ID of an answer and its outcome.
func (a *dnsAsker) judge(text []byte) (id uint16, o Outcome) {
	var m dns.Msg
	if err := m.Unpack(text); err != nil {
		if len(text) >= 2 {
			id = binary.BigEndian.Uint16(text)
		}
		return id, Wrong
	}
	return m.Id, a.Judge(a.way, &m)
}

// exchange sends a query and waits for its answer.
func (a *dnsAsker) exchange(conn net.Conn, id uint16) (Outcome, error) {
	text, err := a.query(id)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(dnsAnswerTimeout))
	}
	if err == nil {
		_, err = conn.Write(text)
	}
	answer := make([]byte, dns.DefaultMsgSize)
	for err == nil {
		var n int
		if n, err = conn.Read(answer); err == nil {
			if got, o := a.judge(answer[:n]); got == id {
				return o, nil
			}
		}
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return Refused, err
	}
	return Lost, err
}

// keptSocket is a socket with many queries.
type keptSocket struct {
	conn *net.UDPConn
	mu   sync.Mutex
	open map[uint16]keptQuery // by ID
}

type keptQuery struct {
	sent time.Time
	done func(Outcome, error)
}

// ask sends a query through a socket that is kept.
func (a *dnsAsker) ask(k *keptSocket, id uint16, done func(Outcome, error)) error {
	text, err := a.query(id)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.open[id] = keptQuery{time.Now(), done}
	k.mu.Unlock()
	// The first write may return the error of an earlier query.
	if _, err := k.conn.Write(text); err != nil {
		_, _ = k.conn.Write(text) // if this fails, the query is lost
	}
	return nil
}

// receive reads answers until the deadline that Close sets.
func (a *dnsAsker) receive(k *keptSocket) {
	text := make([]byte, dns.DefaultMsgSize)
	for {
		n, err := k.conn.Read(text)
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			continue // its query counts as lost
		case err != nil:
			return
		}
		id, o := a.judge(text[:n])
		k.mu.Lock()
		q, found := k.open[id]
		delete(k.open, id)
		k.mu.Unlock()
		if found && time.Since(q.sent) < dnsAnswerTimeout {
			q.done(o, nil)
		}
	}
}
