package localdns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gridproxy/cmd/dnsquery"
	"gridproxy/rules"
	"gridproxy/rules/dnsredirect"
	"gridproxy/topology/dnsfeed"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
)

// nameServer answers every query with a text, over UDP and TCP, on a loopback address of its own.
type nameServer struct {
	at    netip.AddrPort
	mute  atomic.Bool // it does not answer
	rcode atomic.Uint32
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	addr := netip.AddrFrom4([4]byte{127, byte(1 + rand.IntN(250)), byte(rand.IntN(250)), byte(1 + rand.IntN(250))})
	s := &nameServer{at: netip.AddrPortFrom(addr, dnsredirect.Port)}
	udp, err := net.ListenPacket("udp", s.at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	tcp, err := net.Listen("tcp", s.at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tcp.Close() })
	go func() {
		in := make([]byte, 512)
		for {
			n, from, err := udp.ReadFrom(in)
			if err != nil {
				return
			}
			if out := s.answer(in[:n]); out != nil {
				_, _ = udp.WriteTo(out, from)
			}
		}
	}()
	go func() {
		for {
			conn, err := tcp.Accept()
			if err != nil {
				return
			}
			go s.attend(conn)
		}
	}()
	return s
}

func (s *nameServer) attend(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the test is over
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	in := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, in); err != nil {
		return
	}
	if out := s.answer(in); out != nil {
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	}
}

func (s *nameServer) answer(query []byte) []byte {
	var m dnsmessage.Message
	if s.mute.Load() || m.Unpack(query) != nil {
		return nil
	}
	m.Response, m.RCode = true, dnsmessage.RCode(s.rcode.Load())
	m.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET},
		Body:   &dnsmessage.TXTResource{TXT: []string{"1.1.0"}},
	}}
	out, _ := m.Pack()
	return out
}

// recordedSwitch remembers what it leads.
type recordedSwitch struct {
	mu     sync.Mutex
	led    []dnsredirect.Entry
	calls  int
	cannot map[rules.Family]error // by Prepare
	err    error
}

func (s *recordedSwitch) Prepare(f rules.Family) error { return s.cannot[f] }

func (s *recordedSwitch) Lead(all []dnsredirect.Entry, leave rules.FamilySet) (failed rules.FamilySet, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.err == nil {
		s.led = append(slices.Clone(all), slices.DeleteFunc(s.led, func(e dnsredirect.Entry) bool {
			return !leave[rules.FamilyOf(e.Addr)] || slices.Contains(all, e)
		})...)
	}
	return rules.FamilySet{s.err != nil, s.err != nil}, s.err
}

func (s *recordedSwitch) leads() []dnsredirect.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.led
}

// redirectorOf returns the redirector of a config that leaves out what a test does not need.
func redirectorOf(c redirectorConfig) *redirector {
	c.Log = slog.New(slog.DiscardHandler)
	if c.Server == nil {
		c.Server = serverOf()
	}
	if c.Switch == nil {
		c.Switch = &recordedSwitch{}
	}
	if c.Switched == nil {
		c.Switched = func(Path) {}
	}
	if c.Prevents == nil {
		c.Prevents = func(rules.Family) string { return "" }
	}
	return newRedirector(c)
}

// TestAsk: only a good answer is one.
func TestAsk(t *testing.T) {
	s := newNameServer(t)
	for _, network := range []string{"udp", "tcp"} {
		if err := dnsquery.Ask(t.Context(), network, s.at, "cluster.local"); err != nil {
			t.Errorf("over %s: %v", network, err)
		}
		s.rcode.Store(uint32(dnsmessage.RCodeServerFailure))
		if err := dnsquery.Ask(t.Context(), network, s.at, "cluster.local"); !errors.Is(err, dnsquery.ErrWrongAnswer) {
			t.Errorf("a failure over %s is %v, want a wrong answer", network, err)
		}
		s.rcode.Store(0)
		s.mute.Store(true)
		if err := dnsquery.Ask(t.Context(), network, s.at, "cluster.local"); err == nil || errors.Is(err, dnsquery.ErrWrongAnswer) {
			t.Errorf("silence over %s is an answer: %v", network, err)
		}
		s.mute.Store(false)
	}
}

// TestRedirector: queries are led to the DNS server of this node while it serves and answers, and
// to the cluster's as soon as it does not.
func TestRedirector(t *testing.T) {
	f, s, to := newFeed(t), newNameServer(t), &recordedSwitch{}
	want := []dnsredirect.Entry{{Addr: netip.MustParseAddr("10.96.0.10"), Proto: corev1.ProtocolUDP}}
	k := redirectorOf(redirectorConfig{Server: f.Server, Addrs: []netip.Addr{s.at.Addr()}, Domain: "cluster.local", Switch: to})
	k.SetEntries(want)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	until := func(what string, local bool) {
		t.Helper()
		f.until(t, fmt.Sprintf("%s: %+v", what, k.Paths()), func([]Client) bool {
			return (len(to.leads()) > 0) == local && k.Paths()[0].Local == local
		})
	}

	r := f.connect(t)
	stop := r.keepReporting(s.at)
	until("a server that answers", true)
	if got := to.leads(); !slices.Equal(got, want) {
		t.Errorf("led: %v", got)
	}
	s.mute.Store(true)
	until("a server that does not answer", false)
	s.mute.Store(false)
	until("one that answers again", true)
	stop()
	until("one that does not report", false)
	stop = r.keepReporting(s.at)
	until("one that reports again", true)
	k.SetEntries(append(want, dnsredirect.Entry{Addr: netip.MustParseAddr("10.96.0.11"), Proto: corev1.ProtocolUDP}))
	f.until(t, "another cluster IP", func([]Client) bool { return len(to.leads()) == 2 })
	stop()
	_ = r.conn.Close()
	until("one that has gone", false)
}

// keepReporting reports, twice a second, until it is stopped.
func (r *reader) keepReporting(at netip.AddrPort) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var reporting sync.WaitGroup
	reporting.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			_ = r.out.Report(dnsfeed.Report{Serving: []netip.AddrPort{at}})
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return func() { cancel(); reporting.Wait() }
}

// leadAsDecided is one turn of Run, long after the start.
func leadAsDecided(k *redirector) {
	k.prepare()
	paths, entries := k.decide(time.Now())
	k.lead(paths, entries, k.undecided(entries, startGrace))
}

// TestStartByFamily: what a daemon before led stays at a start, each family until something is led
// of it.
func TestStartByFamily(t *testing.T) {
	v4, v6 := bothEntries[0], bothEntries[1]
	to := &recordedSwitch{led: slices.Clone(bothEntries)}
	k := redirectorOf(redirectorConfig{Addrs: bothServers, Switch: to})
	for _, step := range []struct {
		what          string
		entries, want []dnsredirect.Entry
		since         time.Duration
	}{
		{"at the start", nil, []dnsredirect.Entry{v4, v6}, 0},
		{"when IPv6 is led", []dnsredirect.Entry{v6}, []dnsredirect.Entry{v6, v4}, time.Second},
		{"when IPv6 is not led any more", nil, []dnsredirect.Entry{v4}, 2 * time.Second},
		{"while no name is known", nil, []dnsredirect.Entry{v4}, startGrace},
		{"after the start", nil, nil, startGrace},
	} {
		if step.what == "after the start" {
			k.SetEntries(nil)
		}
		k.lead(nil, step.entries, k.undecided(step.entries, step.since))
		if got := to.leads(); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v is led, want %v", step.what, got, step.want)
		}
	}
}

// TestNeverServed: a DNS server that does not come is reported, once, so that what a daemon before
// led to it ends.
func TestNeverServed(t *testing.T) {
	var switched []Path
	k := redirectorOf(redirectorConfig{Addrs: bothServers[:1], Switched: func(p Path) { switched = append(switched, p) }})
	k.SetEntries(nil)
	for _, step := range []struct {
		since time.Duration
		want  int
	}{{0, 0}, {startGrace / 2, 0}, {startGrace, 1}, {2 * startGrace, 1}} {
		paths, entries := k.decide(time.Now())
		k.lead(paths, entries, k.undecided(entries, step.since))
		if len(switched) != step.want {
			t.Errorf("%s after the start: %+v", step.since, switched)
		}
	}
	if len(switched) > 0 && (switched[0].Local || switched[0].Why == "") {
		t.Errorf("%+v", switched[0])
	}
}

// TestRefuse: with --dns-when-away refuse queries go to the DNS servers of this node, whatever
// these do.
func TestRefuse(t *testing.T) {
	to := &recordedSwitch{}
	k := redirectorOf(redirectorConfig{Addrs: bothServers[:1], Switch: to, Always: true})
	k.SetEntries(bothEntries[:1])
	leadAsDecided(k)
	if p := k.Paths()[0]; len(to.leads()) != 1 || !p.Local || p.Why == "" {
		t.Errorf("led %v, %+v", to.leads(), p)
	}
}

// The addresses and entries of a node with both families.
var (
	bothServers = []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")}
	bothEntries = []dnsredirect.Entry{
		{Addr: netip.MustParseAddr("10.96.0.10"), Proto: corev1.ProtocolUDP}, {Addr: netip.MustParseAddr("fd00:96::10"), Proto: corev1.ProtocolUDP},
	}
)

// TestUnableFamily: a family that this machine cannot lead goes to the cluster's DNS, and is
// reported once with the reason, whether or not something would answer. The other family is led.
func TestUnableFamily(t *testing.T) {
	var switched []Path
	prevented, to := "", &recordedSwitch{cannot: map[rules.Family]error{rules.IPv6: io.ErrUnexpectedEOF}}
	k := redirectorOf(redirectorConfig{
		Addrs: bothServers, Switch: to, Always: true,
		Prevents: func(f rules.Family) string { return map[rules.Family]string{rules.IPv4: prevented}[f] },
		Switched: func(p Path) { switched = append(switched, p) },
	})
	k.SetEntries(bothEntries)
	for range 3 {
		leadAsDecided(k)
	}
	if got := to.leads(); !slices.Equal(got, bothEntries[:1]) {
		t.Errorf("led: %v, want IPv4", got)
	}
	if len(switched) != 2 || !switched[0].Local || !switched[1].Prevented || switched[1].Addr != bothServers[1] || switched[1].Why != io.ErrUnexpectedEOF.Error() {
		t.Errorf("%+v, want IPv4 led and the reason for IPv6", switched)
	}
	prevented, switched = "no match", nil
	leadAsDecided(k)
	leadAsDecided(k)
	if got := to.leads(); len(got) > 0 || len(switched) != 1 || switched[0].Local || switched[0].Why != "no match" {
		t.Errorf("led %v although the rules cannot: %+v", got, switched)
	}
	prevented, to.cannot, switched = "", nil, nil
	k.renewed = time.Time{}
	leadAsDecided(k)
	if got := to.leads(); !slices.Equal(got, bothEntries) || len(switched) != 2 {
		t.Errorf("led %v once nothing is missing, %+v", got, switched)
	}
}

// TestSingleStack: a family in which the cluster's DNS has no address is not led anywhere, and this
// is no switch.
func TestSingleStack(t *testing.T) {
	var switched []Path
	k := redirectorOf(redirectorConfig{Addrs: bothServers, Always: true, Switched: func(p Path) { switched = append(switched, p) }})
	leadAsDecided(k)
	if p := k.Paths(); p[0].Local || p[0].Unasked || p[1].Unasked {
		t.Errorf("before the cluster's DNS is known: %+v", p)
	}
	k.SetEntries(bothEntries[:1])
	leadAsDecided(k)
	leadAsDecided(k)
	p := k.Paths()
	if !p[0].Local || p[1].Local || !p[1].Unasked || p[1].Switches != 0 || p[1].Why == "" {
		t.Errorf("%+v, want IPv4 led, and IPv6 not asked", p)
	}
	for _, s := range switched[1:] {
		if s.Addr == bothServers[1] && !s.Unasked {
			t.Errorf("a report about a family that no query uses: %+v", s)
		}
	}
}

// newRound returns a function that runs a redirector once. Its DNS server answers if well is
// true.
func newRound(t *testing.T, prevents func(rules.Family) string) (turn func(after time.Duration, well bool) Path) {
	t.Helper()
	f, s, now := newFeed(t), newNameServer(t), time.Now()
	r, addr := f.connect(t), s.at.Addr()
	k := redirectorOf(redirectorConfig{Server: f.Server, Addrs: []netip.Addr{addr}, Prevents: prevents})
	k.SetEntries(bothEntries[:1])
	if err := r.out.Report(dnsfeed.Report{Serving: []netip.AddrPort{s.at}}); err != nil {
		t.Fatal(err)
	}
	f.until(t, "the report", func(all []Client) bool { return len(all) == 1 && len(all[0].Serving) == 1 })
	return func(after time.Duration, well bool) Path {
		now = now.Add(after)
		f.mu.Lock()
		for c := range f.clients {
			c.state.Reported = now
		}
		f.mu.Unlock()
		if k.answers[addr] = (ownAnswers{}); well {
			k.answers[addr] = ownAnswers{Answers: Answers{UDP: now, TCP: now}}
		}
		paths, _ := k.decide(now)
		k.note(paths, now)
		return k.Paths()[0]
	}
}

// TestReturn: queries go back to the servers of this node at once after the first time that they
// left, and later only when these have been well for a while.
func TestReturn(t *testing.T) {
	turn := newRound(t, func(rules.Family) string { return "" })
	for i, step := range []struct {
		after       time.Duration
		well, local bool
	}{
		{0, true, true}, {0, false, false}, {0, true, true}, // at once after the first time
		{0, false, false}, {0, true, false}, {time.Second, true, false}, {0, false, false}, {0, true, false}, // the wait begins again
	} {
		if p := turn(step.after, step.well); p.Local != step.local || p.Local != (p.Why == "") || (p.Wait > 0) != (step.well && !step.local) {
			t.Errorf("step %d: %+v, want local %t", i, p, step.local)
		}
	}
	if p := turn(time.Second, true); p.Local || p.Wait != time.Second {
		t.Errorf("in the middle: %+v", p)
	}
	if p := turn(time.Second/2, true); p.Local || p.Switches != 4 {
		t.Errorf("shortly before: %+v", p)
	}
	if p := turn(time.Second/2, true); !p.Local || p.Switches != 5 {
		t.Errorf("after two seconds: %+v", p)
	}
}

// TestReturnOfAFamily: a machine that can lead a family only now and then does not switch with each
// turn.
func TestReturnOfAFamily(t *testing.T) {
	prevents := ""
	turn := newRound(t, func(rules.Family) string { return prevents })
	for i, want := range []bool{true, true, false} { // at once after the first time
		prevents = ""
		if p := turn(returnDelayMax, true); p.Local != want { // the DNS server is well all the time
			t.Errorf("turn %d: %+v, want local %t", i, p, want)
		}
		prevents = "no match set"
		turn(0, true)
	}
}

// TestPrepareFails: what is led stays so while the kernel has no time for an answer, and is given
// up after some times; never where queries are led there always.
func TestPrepareFails(t *testing.T) {
	for _, always := range []bool{false, true} {
		to, addr := &recordedSwitch{}, bothServers[0]
		k := redirectorOf(redirectorConfig{Addrs: bothServers[:1], Switch: to, Always: always})
		k.prepare()
		to.cannot = map[rules.Family]error{rules.IPv4: io.ErrUnexpectedEOF}
		for n := 1; n < prepareFailuresMax; n++ {
			if k.prepare(); k.cannot[addr] != "" {
				t.Errorf("always %t: given up after %d failures", always, n)
			}
		}
		if k.prepare(); (k.cannot[addr] != "") == always {
			t.Errorf("always %t: after %d failures: %q", always, prepareFailuresMax, k.cannot[addr])
		}
		to.cannot = nil
		if k.prepare(); k.cannot[addr] != "" {
			t.Errorf("always %t: still %q", always, k.cannot[addr])
		}
	}
}

// TestLeadFails: a kernel that refuses is tried again, and what it was told last does not count.
func TestLeadFails(t *testing.T) {
	to, switched := &recordedSwitch{err: io.ErrUnexpectedEOF}, 0
	k := redirectorOf(redirectorConfig{Addrs: bothServers[:1], Switch: to, Always: true, Switched: func(Path) { switched++ }})
	k.SetEntries(bothEntries[:1])
	leadAsDecided(k)
	if switched != 0 {
		t.Error("flows are ended although the kernel leads as before")
	}
	to.err = nil
	leadAsDecided(k)
	if len(to.leads()) != 1 || switched != 1 {
		t.Errorf("after the kernel works again: %v, switched %d times", to.leads(), switched)
	}
	leadAsDecided(k)
	if to.calls != 2 {
		t.Errorf("%d calls, want 2: nothing has changed, and nothing has to be renewed", to.calls)
	}
}
