package ipvs

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
	"gridproxy/rules"
	"gridproxy/rules/kernelsocket"

	"github.com/moby/ipvs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestAnswerHasALimit: a list of virtual servers that never comes ends the call, and the next call
// has a socket that works. The kernel ignores such a request where it lacks IPVS, because the
// library then asks for message type 0; where it has IPVS, the test asks until the socket is
// closed.
func TestAnswerHasALimit(t *testing.T) {
	handle, err := ipvs.New("")
	must(t, err)
	k := &kernel{servers: handle}
	defer k.close()
	result := make(chan error, 1)
	go func() {
		result <- k.ask(300*time.Millisecond, func(h *ipvs.Handle) error {
			for {
				if _, err := h.GetServices(); err != nil {
					return err
				}
			}
		})
	}()
	if err := wait.Receive(t, "the call ends without an answer", result); !errors.Is(err, errNoAnswer) || !hangs(err) {
		t.Errorf("%v, want that the kernel did not answer", err)
	}
	if k.servers == handle {
		t.Fatal("the closed socket is still in use")
	}
	if err := k.ask(kernelsocket.AnswerLimit, func(*ipvs.Handle) error { return unix.ENOENT }); !errors.Is(err, unix.ENOENT) || hangs(err) {
		t.Errorf("%v, want what the kernel answered", err)
	}
}

// TestSocketsHaveALimit: without one, a message whose answer is lost would be waited for without
// end. An answer cannot be made to get lost, so this looks at the sockets.
func TestSocketsHaveALimit(t *testing.T) {
	k, err := openKernel()
	must(t, err)
	defer k.close()
	for name, handle := range map[string]*netlink.Handle{"links": k.links, "sets": k.sets} {
		sockets := reflect.ValueOf(handle).Elem().FieldByName("sockets")
		if sockets.Len() == 0 {
			t.Errorf("%s: no socket", name)
		}
		for _, key := range sockets.MapKeys() {
			socket := sockets.MapIndex(key).Elem().FieldByName("Socket").Elem()
			for _, field := range []string{"sendTimeout", "receiveTimeout"} {
				if got := time.Duration(socket.FieldByName(field).Int()); got != kernelsocket.AnswerLimit {
					t.Errorf("%s: %s is %s, want %s", name, field, got, kernelsocket.AnswerLimit)
				}
			}
		}
	}
}

// TestSyncRunEndsWithItsContext: no message is sent after the Sync was to end. A backend without a
// kernel would panic.
func TestSyncRunEndsWithItsContext(t *testing.T) {
	stopped := errors.New("gridproxy stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	r := syncRun{backend: &Backend{}, ctx: ctx}
	r.do([]operation{{Kind: addAddress}, {Kind: addAddress}}, true)
	r.do([]operation{{Kind: addAddress}}, false)
	outcomes := r.outcomes(nil)
	if err := r.err(); !errors.Is(err, stopped) || outcomes[rules.IPv4].Synced() || outcomes[rules.IPv6].Synced() {
		t.Errorf("%v, outcomes %v", err, outcomes)
	}
}
