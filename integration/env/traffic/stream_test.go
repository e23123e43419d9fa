package traffic

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// world is a lab without rules, and ways to the Pods that serve in the manual, by both families.
type world struct {
	*netns.Lab
	t      *testing.T
	client *Client
	ways   []Way
}

func newWorld(t *testing.T, deadline time.Duration) *world {
	t.Helper()
	need.IPTables(t)
	l := netns.ForTest(t, netns.Manual().Only("bj-1", "bj-3"))
	w := &world{Lab: l, t: t, client: &Client{Who: OfLab, Deadline: deadline}}
	for _, f := range netns.Families() {
		to := netip.AddrPortFrom(l.Pod("beijing-v9zdr").Addr(f), netns.EchoPort)
		w.ways = append(w.ways, Way{From: l.Client("bj-1").Namespace, To: to, Name: "a Pod"}, Way{From: l.Outside, To: to})
	}
	return w
}

func (w *world) start(rate int) *Traffic {
	w.t.Helper()
	flows, err := w.client.Hold([]string{"beijing-v9zdr"}, w.ways...)
	if err != nil {
		w.t.Fatal(err)
	}
	traffic := &Traffic{Flows: flows, Calls: w.client.Call(rate, w.ways...)}
	w.t.Cleanup(func() {
		traffic.End()
	})
	return traffic
}

func (w *world) during(traffic *Traffic, event string, happen func() error) Account {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	a, err := traffic.During(ctx, event, happen)
	if err != nil {
		w.t.Error(err)
	}
	return a
}

// forbid appends a rule to FORWARD of the node that the Pod is on, and lets it stand until so many
// packets of both families have met it.
func (w *world) forbid(target string, most int) error {
	node := w.Node("bj-3")
	rule := "*filter\n-A FORWARD -p tcp --dport 8080 -j " + target + "\nCOMMIT\n"
	for _, tool := range []string{"iptables-nft", "ip6tables-nft"} {
		if _, err := node.Run(w.t.Context(), strings.NewReader(rule), tool+"-restore", "--noflush"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for _, tool := range []string{"iptables-nft", "ip6tables-nft"} {
		if err := wait.For(ctx, func(context.Context) error { return w.met(tool, most) }); err != nil {
			return err
		}
		if _, err := node.Run(w.t.Context(), nil, tool, "-F", "FORWARD"); err != nil {
			return err
		}
	}
	return nil
}

// met says by an error that fewer packets have met the rule than that.
func (w *world) met(tool string, most int) error {
	out, err := w.Node("bj-3").Run(w.t.Context(), nil, tool+"-save", "-c", "-t", "filter")
	if err != nil {
		return err
	}
	_, counters, _ := strings.Cut(string(out), "\n[")
	packets, _, _ := strings.Cut(counters, ":")
	if n, err := strconv.Atoi(packets); err != nil || n < most {
		return fmt.Errorf("%q packets have met the rule, want %d", packets, most)
	}
	return nil
}

// All goes well: everything is counted and nothing is lost; each way and each open connection has its
// share.
func TestNothingLost(t *testing.T) {
	w := newWorld(t, 0)
	traffic := w.start(200)
	quiet := w.during(traffic, "nothing", func() error {
		return traffic.Calls.More(t.Context(), 50)
	})
	if quiet.Short < 200 || quiet.Open != 4 || len(quiet.Lost) > 0 || quiet.Slowest == 0 {
		t.Errorf("4 ways asked 50 times each, and 4 open connections: %+v", quiet)
	}
	all := traffic.End()
	if all.Short < quiet.Short || all.Open != 4 || len(all.Lost) > 0 {
		t.Errorf("all of it: %+v", all)
	}
	Print(os.Stderr, quiet, all)
	for _, f := range traffic.Flows {
		if f.Pod != "beijing-v9zdr" || f.Lost() != nil {
			t.Errorf("%+v", f)
		}
	}
}

// Connections that are reset are lost, all that were open among them, and those that are made
// afterwards are not.
func TestReset(t *testing.T) {
	w := newWorld(t, 0)
	traffic := w.start(100)
	reset := w.during(traffic, "reset", func() error { return w.forbid("REJECT --reject-with tcp-reset", 20) })
	if reset.Open != 4 || len(reset.Lost) < 4+10 {
		t.Errorf("all connections reset: %+v", reset)
	}
	open := 0
	for _, l := range reset.Lost {
		if l.Pod != "" {
			open++
		}
		if text := l.String(); !strings.Contains(text, "reset") && !strings.Contains(text, "refused") {
			t.Errorf("a reset connection: %s", text)
		}
	}
	if open != 4 {
		t.Errorf("%d open connections lost, want 4", open)
	}
	after := w.during(traffic, "after", func() error { return nil })
	if len(after.Lost) > 0 || after.Open != 0 || after.Short == 0 {
		t.Errorf("after the reset: %+v", after)
	}
	Print(os.Stderr, reset, after, traffic.End())
}

// Packets that are lost for a while are sent again: no connection is lost, and the account shows how
// slow it was.
func TestLostPackets(t *testing.T) {
	w := newWorld(t, 0)
	traffic := w.start(100)
	slow := w.during(traffic, "packets lost", func() error { return w.forbid("DROP", 20) })
	if len(slow.Lost) > 0 || slow.Open != 4 {
		t.Errorf("packets lost for a while: %+v", slow)
	}
	if slow.Slowest < 500*time.Millisecond { // a lower bound: a lost first packet waits a second
		t.Errorf("packets were lost, and the slowest took %s", slow.Slowest)
	}
	if slow.Resent < 10 {
		t.Errorf("packets were lost, and %d connections sent one again", slow.Resent)
	}
	Print(os.Stderr, slow, traffic.End())
}

// What is not answered within the deadline is lost.
func TestDeadline(t *testing.T) {
	w := newWorld(t, 300*time.Millisecond)
	traffic := w.start(100)
	lost := w.during(traffic, "cut off", func() error {
		return w.forbid("DROP", 20)
	})
	if len(lost.Lost) == 0 {
		t.Errorf("cut off: %+v", lost)
	}
	for _, l := range lost.Lost {
		if text := l.String(); !strings.Contains(text, "timeout") && !strings.Contains(text, "not answered within") {
			t.Errorf("an unanswered connection: %s", l)
		}
	}
}

// A Pod that no connection reaches is named.
func TestHoldMisses(t *testing.T) {
	w := newWorld(t, 0)
	if _, err := w.client.Hold([]string{"beijing-v9zdr", "nobody"}, w.ways[0]); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a Pod that does not exist: %v", err)
	}
}

// Connections that are made one after the other are counted as those at a rate are.
func TestInTurn(t *testing.T) {
	w := newWorld(t, 0)
	traffic := &Traffic{Calls: w.client.CallInTurn(w.ways...)}
	t.Cleanup(traffic.Calls.End)
	a := w.during(traffic, "a few in turn", func() error { return traffic.Calls.More(t.Context(), 20) })
	if a.Short < 4*20 || len(a.Lost) > 0 || a.Open != 0 {
		t.Errorf("4 ways asked 20 times each: %+v", a)
	}
}

// A dialogue goes on until the test ends it on the server, from the port that the caller chose.
func TestDialogue(t *testing.T) {
	w := newWorld(t, 0)
	const port = 9999
	conn, err := w.ways[0].Dial(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if from := netip.MustParseAddrPort(conn.LocalAddr().String()).Port(); from != port {
		t.Errorf("from port %d, want %d", from, port)
	}
	d := w.client.Over(conn)
	for _, ask := range []func(context.Context) (string, error){d.Ask, d.AskLast} {
		if pod, err := ask(t.Context()); pod != "beijing-v9zdr" || err != nil {
			t.Errorf("%s answers: %v", pod, err)
		}
	}
	if pod, err := d.Ask(t.Context()); err == nil {
		t.Errorf("%s answers on a connection that it has ended", pod)
	}
}

// The answers of both echo servers are understood.
func TestWho(t *testing.T) {
	if pod, err := OfLab("bj-1 / beijing-wrx7r / 10.0.0.66:12000\n"); pod != "beijing-wrx7r" || err != nil {
		t.Errorf("the lab's: %q, %v", pod, err)
	}
	manual := "Hostname: x\n\nPod Information:\n\tnode name:\tbj-1\n\tpod name:\techo-abc\n\tpod IP:\t10.0.0.70\n"
	if pod, err := OfManual(manual); pod != "echo-abc" || err != nil {
		t.Errorf("the manual's: %q, %v", pod, err)
	}
	if pod, err := OfManual("502 Bad Gateway"); err == nil {
		t.Errorf("no echo server at all: %q", pod)
	}
}
