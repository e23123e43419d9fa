package drain

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"gridproxy/integration/lab"
)

// flow is one TCP connection that stays open and asks again and again.
type flow struct {
	world *world
	route route
	pod   string // who answered first
	conn  net.Conn
	read  *bufio.Reader
	gone  func() // its port is free; nil where that is nobody's business

	ended chan struct{} // closed by end
	done  chan struct{} // closed when nothing more is asked
	mu    sync.Mutex
	asked int
	err   error // why it ended before it was told to
}

// pause lies between two questions of a flow: many of them share one processor.
const pause = 200 * time.Millisecond

// hold opens flows on each route until every one of some Pods has one, and keeps these.
func (w *world) hold(pods []*lab.Pod, routes ...route) []*flow {
	w.t.Helper()
	var kept []*flow
	for _, r := range routes {
		missing := map[string]bool{}
		for _, p := range pods {
			missing[p.Name] = true
		}
		for range 100 {
			if len(missing) == 0 {
				break
			}
			f := w.open(r)
			if !missing[f.pod] {
				f.end()
				continue
			}
			delete(missing, f.pod)
			kept = append(kept, f)
		}
		if len(missing) > 0 {
			w.t.Fatalf("%s: no connection to %v in 100", r, missing)
		}
	}
	return kept
}

// open opens one flow.
func (w *world) open(r route) *flow {
	w.t.Helper()
	ctx, cancel := w.fair()
	defer cancel()
	f, err := w.connect(ctx, r)
	w.must(err)
	if f.pod, err = f.ask(ctx); err != nil {
		w.t.Fatal(errors.Join(err, f.close()))
	}
	go f.goOn()
	w.t.Cleanup(f.end)
	return f
}

func (w *world) newFlow(r route, conn net.Conn) *flow {
	return &flow{world: w, route: r, conn: conn, read: bufio.NewReader(conn), ended: make(chan struct{}), done: make(chan struct{})}
}

// ask asks once and returns the name of the Pod that answers.
func (f *flow) ask(ctx context.Context) (string, error) { return f.say(ctx, "") }

// askLast asks once, and the server then ends the connection.
func (f *flow) askLast(ctx context.Context) (string, error) {
	return f.say(ctx, "Connection: close\r\n")
}

func (f *flow) say(ctx context.Context, header string) (pod string, err error) {
	stop := context.AfterFunc(ctx, func() { _ = f.conn.SetDeadline(time.Unix(1, 0)) }) // if it is closed, nobody waits
	defer stop()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}()
	if _, err := io.WriteString(f.conn, "GET / HTTP/1.1\r\nHost: echo\r\n"+header+"\r\n"); err != nil {
		return "", fmt.Errorf("asking: %w", err)
	}
	resp, err := http.ReadResponse(f.read, nil)
	if err != nil {
		return "", fmt.Errorf("hearing: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("hearing: %w", err)
	}
	a, err := lab.ParseAnswer(string(text))
	if err == nil {
		f.world.answered.Add(1)
	}
	return a.Pod, err
}

func (f *flow) askPatiently() (string, error) {
	ctx, cancel := f.world.fair()
	defer cancel()
	return f.ask(ctx)
}

func (f *flow) goOn() {
	defer close(f.done)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-f.ended:
			return
		case <-tick.C:
		}
		pod, err := f.askPatiently()
		if err == nil && pod != f.pod {
			err = fmt.Errorf("%s answers", pod)
		}
		f.mu.Lock()
		f.asked++
		f.err = err
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// end asks no more and closes the connection.
func (f *flow) end() {
	select {
	case <-f.ended:
	default:
		close(f.ended)
	}
	<-f.done
	_ = f.close() // one that is closed already has ended
}

// close ends the connection by a reset: the kernel then forgets it in ten seconds, while one that ends
// in good order counts as a connection for two minutes more.
func (f *flow) close() error {
	if f.gone != nil {
		defer f.gone()
	}
	if tcp, ok := f.conn.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return fmt.Errorf("ending a connection by a reset: %w", err)
		}
	}
	return f.conn.Close()
}

func (f *flow) state() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.asked, fmt.Errorf("an open connection, %s, from %s, to %s: question %d: %w", f.route, f.conn.LocalAddr(), f.pod, f.asked, f.err)
	}
	return f.asked, nil
}

// alive wants every flow to have been answered by its Pod up to now, and twice more.
func (w *world) alive(flows []*flow) {
	w.t.Helper()
	var errs []error
	for _, f := range flows {
		before, _ := f.state()
		ctx, cancel := w.within()
		err := lab.Poll(ctx, func(context.Context) error {
			asked, err := f.state()
			if err == nil && asked < before+2 {
				err = fmt.Errorf("an open connection, %s, to %s asked %d times, want %d", f.route, f.pod, asked, before+2)
			}
			if err != nil && asked >= before+2 || f.over() {
				cancel()
			}
			return err
		})
		cancel()
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		w.t.Error(err)
	}
}

func (f *flow) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// to are the flows to a Pod.
func to(pod string, flows []*flow) []*flow {
	var out []*flow
	for _, f := range flows {
		if f.pod == pod {
			out = append(out, f)
		}
	}
	return out
}

func end(flows []*flow) {
	for _, f := range flows {
		f.end()
	}
}
