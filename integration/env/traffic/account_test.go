package traffic

import (
	"errors"
	"net"
	"testing"
	"time"
)

// What was answered while the slowest was under way tells a connection whose packets were lost from a
// machine that stood still.
func TestMeanwhile(t *testing.T) {
	begin := time.Now()
	at := func(begins, took time.Duration, err error) Attempt {
		return Attempt{Begin: begin.Add(begins), Took: took, Err: err}
	}
	slow := at(0, 10*time.Second, nil)
	for _, test := range []struct {
		name     string
		attempts []Attempt
		want     float64
	}{
		{"nothing else", nil, 0},
		{"before, after and across", []Attempt{at(-2, 1, nil), at(11*time.Second, 1, nil), at(9*time.Second, 2*time.Second, nil)}, 0},
		{"meanwhile", []Attempt{at(1, 1, nil), at(2, 1, nil), at(3, 1, nil)}, 1.5},
		{"lost meanwhile", []Attempt{at(1, 1, errors.New("refused"))}, 0},
	} {
		traffic := Traffic{Calls: &Calls{ways: make([]Way, 2), attempts: append(test.attempts, slow)}}
		if a := traffic.between("", time.Time{}, begin.Add(time.Hour)); a.Meanwhile != test.want || a.Slowest != slow.Took {
			t.Errorf("%s: %v on each way, the slowest took %s; want %v and %s", test.name, a.Meanwhile, a.Slowest, test.want, slow.Took)
		}
	}
}

// An open connection that is lost at the question that End finds under way is in the account.
func TestLostAtEnd(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	client := &Client{Who: OfLab}
	f := &Flow{Pod: "pod", dialogue: client.Over(conn), end: make(chan struct{}), done: make(chan struct{})}
	go f.goOn()
	if _, err := far.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-f.end
		far.Close()
	}()
	traffic := &Traffic{Calls: client.CallInTurn(), Flows: []*Flow{f}}
	if a := traffic.End(); a.Open != 1 || len(a.Lost) != 1 {
		t.Errorf("the account has %d open connections and %d losses, want 1 of each", a.Open, len(a.Lost))
	}
}
