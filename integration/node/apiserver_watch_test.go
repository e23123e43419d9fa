package node

import (
	"net/http"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFollowsEveryKind(t *testing.T) {
	t.Parallel()
	w := newSettled(t)
	for range 5 {
		w.load.change(20)
		w.settle()
	}
	must(w.t, w.api.CoreV1().Nodes().Delete(w.ctx, self, metav1.DeleteOptions{}))
	w.settle()
	if s, _ := w.source.Snapshot(); s.Self != nil {
		t.Error("this node's object outlives its deletion")
	}
	w.load.nodes = nil
	w.load.addNode(self)
	w.settle()
}

// TestGapWhileAPIServerIsDown changes things that no watch can have told of: they went into etcd while
// the only API server that the source knows did not run.
func TestGapWhileAPIServerIsDown(t *testing.T) {
	t.Parallel()
	w := newSettled(t)
	other, err := w.AddAPIServer(w.ctx)
	must(t, err)
	w.API.Stop()
	w.load.on(apiserver.ClientForTest(w.t, w.AdminAt(other.Addr)))
	w.load.change(60)
	if _, ok := w.source.Snapshot(); !ok {
		t.Error("the last Snapshot is withdrawn because the API server is away")
	}
	must(t, w.API.Start(w.ctx))
	w.settle()
	w.load.change(20)
	w.settle()
}

// TestGone makes the version that the source would watch on from too old, so that it has to begin
// again; what was deleted meanwhile is in no event any more.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newSettled(t)
	resources := []string{"services", "endpointslices", "nodes"}
	before := map[string]int{}
	for _, r := range resources {
		before[r] = w.asked.whole(r)
	}
	w.link.Cut()
	w.load.change(60)
	must(t, w.CompactAndForceGone(w.ctx))
	w.link.Pass()
	w.settle()
	for _, r := range resources {
		wait.Until(w.t, "the versions of "+r+" are too old", func() error { // of a kind without changes nothing else tells
			return wait.Check(w.asked.whole(r) > before[r], "they were never read whole again, so this tested nothing")
		})
	}
	w.load.change(20)
	w.settle()
}

// TestCutAgainAndAgain changes objects while connections are reset under the watches.
func TestCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := newSettled(t)
	for range 4 {
		w.load.change(8)
		before := w.link.Opened()
		w.link.Cut()
		w.load.change(8)
		w.link.Pass()
		w.load.change(8)
		wait.Until(w.t, "the source connects again, so that the next cut cuts something", func() error {
			return wait.Check(w.link.Opened() != before, "no connection was made since the cut")
		})
	}
	w.settle()
}

// TestCutInTheMiddleOfTheFirstRead lets the first read come through drop by drop and cuts it, where the
// handshake is surely over and the end not yet reached.
func TestCutInTheMiddleOfTheFirstRead(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	w.load.fill(100)
	w.link.Slow(2*time.Millisecond, 500)
	w.watch()
	for range 2 {
		before := w.link.Carried()
		wait.Until(w.t, "the source reads", func() error {
			carried := w.link.Carried() - before
			return wait.Check(carried >= 10_000, "%d bytes have come", carried)
		})
		w.link.Cut()
		if _, ok := w.source.Snapshot(); ok {
			t.Fatal("a Snapshot is handed out before everything was read")
		}
		w.link.Slow(2*time.Millisecond, 500)
	}
	w.link.Pass()
	w.settle()
}

func TestSlow(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	w.load.fill(20)
	w.link.Slow(2*time.Millisecond, 200)
	w.watch()
	w.settle()
	w.load.change(60)
	w.settle()
}

// TestStalled holds bytes back for as long as changes are made, then lets them arrive.
func TestStalled(t *testing.T) {
	t.Parallel()
	w := newSettled(t)
	w.link.Stall()
	w.load.change(60)
	w.link.Pass()
	w.settle()
}

// TestStranded leaves the source with a connection that is dead but was never closed. Only HTTP/2
// pings can reveal that; their timeout is shortened here from client-go's 45 s.
func TestStranded(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "1")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	w := newSettled(t)
	opened := w.link.Opened()
	w.link.Strand()
	w.load.change(60)
	w.settle()
	if w.link.Opened() == opened {
		t.Error("no new connection was made: the old one was not stranded, so this tested nothing")
	}
}

// TestStartsBeforeTheAPIServer begins to watch while no API server answers.
func TestStartsBeforeTheAPIServer(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	w.load.fill(10)
	w.API.Stop()
	w.watch()
	wait.Until(w.t, "the source tries", func() error {
		w.asked.mu.Lock()
		defer w.asked.mu.Unlock()
		return wait.Check(len(w.asked.all) != 0, "it has not asked anything")
	})
	if _, ok := w.source.Snapshot(); ok {
		t.Error("a Snapshot is handed out that nobody can have told")
	}
	must(t, w.API.Start(w.ctx))
	w.settle()
	if w.asked.all[0].status == http.StatusOK {
		t.Error("the first request was answered: the API server was not down")
	}
}
