package traffic

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
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

// DNS is a question for the addresses of a name, over UDP. Methods are safe for concurrent use.
type DNS struct {
	Name  string // with a final dot
	Judge func(w Way, answer *dns.Msg) Outcome
	Fresh bool // every query has a socket of its own

	mu   sync.Mutex
	kept map[keptPlace]*keptSocket
}

// keptPlace identifies a socket that is kept.
type keptPlace struct {
	way    Way
	number int
}

type exchange func(query *dns.Msg) (*dns.Msg, error)

// Once asks once, on a socket of its own.
func (q *DNS) Once(ctx context.Context, w Way) Question {
	conn, err := w.From.Dial(ctx, "udp", w.To)
	if err != nil {
		return Question{Err: err}
	}
	return q.ask(w, exchangeOn(conn))
}

// Next prepares a question of a Load.
func (q *DNS) Next(ctx context.Context, w Way) (Ask, error) {
	var do exchange
	if q.Fresh || rand.IntN(keptShare) > 0 {
		conn, err := dialDNS(w)
		if err != nil {
			return nil, err
		}
		do = exchangeOn(conn)
	} else {
		k, err := q.keptSocket(ctx, keptPlace{w, rand.IntN(keptSockets)})
		if err != nil {
			return nil, err
		}
		do = k.exchange
	}
	return func() Question { return q.ask(w, do) }, nil
}

func dialDNS(w Way) (*net.UDPConn, error) {
	return net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(w.To))
}

func (q *DNS) ask(w Way, do exchange) Question {
	answer, err := do(new(dns.Msg).SetQuestion(q.Name, dns.TypeA))
	switch {
	case err == nil:
		return Question{Outcome: q.Judge(w, answer)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return Question{Outcome: Refused, Err: err}
	case errors.As(err, new(*dns.Error)): // no DNS message
		return Question{Outcome: Wrong, Err: err}
	}
	return Question{Err: err}
}

// exchangeOn returns an exchange that closes its socket.
func exchangeOn(conn net.Conn) exchange {
	return func(query *dns.Msg) (*dns.Msg, error) {
		defer conn.Close()
		client := dns.Client{Timeout: dnsAnswerTimeout}
		answer, _, err := client.ExchangeWithConn(query, &dns.Conn{Conn: conn})
		return answer, err
	}
}

// keptSocket is a socket with many queries.
type keptSocket struct {
	conn  *dns.Conn
	wrong chan error // of a datagram that is no DNS message: the next query that waits takes it

	mu    sync.Mutex
	asked uint16
	open  map[uint16]chan<- *dns.Msg // by the ID of the query
}

// keptSocket returns the socket of a place, which is closed when ctx ends.
func (q *DNS) keptSocket(ctx context.Context, at keptPlace) (*keptSocket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k, found := q.kept[at]; found {
		return k, nil
	}
	conn, err := dialDNS(at.way)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // nothing more is read
	k := &keptSocket{conn: &dns.Conn{Conn: conn}, wrong: make(chan error, 1), open: map[uint16]chan<- *dns.Msg{}}
	if q.kept == nil {
		q.kept = map[keptPlace]*keptSocket{}
	}
	q.kept[at] = k
	go k.receive()
	return k, nil
}

func (k *keptSocket) exchange(query *dns.Msg) (*dns.Msg, error) {
	answered := make(chan *dns.Msg, 1)
	k.mu.Lock()
	k.asked++
	query.Id = k.asked
	k.open[query.Id] = answered
	k.mu.Unlock()
	// The first write may return the error of an earlier query.
	if err := k.conn.WriteMsg(query); err != nil {
		_ = k.conn.WriteMsg(query) // if this fails, the query is lost
	}
	select {
	case m := <-answered:
		return m, nil
	case err := <-k.wrong:
		return nil, err
	case <-time.After(dnsAnswerTimeout):
		return nil, os.ErrDeadlineExceeded
	}
}

// receive reads answers until the socket is closed or broken. A query that is refused is lost.
func (k *keptSocket) receive() {
	for {
		m, err := k.conn.ReadMsg()
		switch {
		case err == nil:
			k.mu.Lock()
			if answered, found := k.open[m.Id]; found {
				delete(k.open, m.Id)
				answered <- m
			}
			k.mu.Unlock()
		case errors.As(err, new(*dns.Error)):
			select {
			case k.wrong <- err:
			default: // an earlier one was not taken
			}
		case !errors.Is(err, syscall.ECONNREFUSED):
			return
		}
	}
}
