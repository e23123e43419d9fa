package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestDaemonTakesOver is the rollout that an operator does: Services are closed in the API, kube-proxy
// ends, `gridproxy run` starts in its place. What the daemon adds to the sync itself (sysctls, flows,
// health-check ports) must not cost anybody a connection either.
func TestDaemonTakesOver(t *testing.T) {
	eachVariant(t, func(t *testing.T, w *takenNode, binary string) {
		w.letKubeProxyWrite()
		written := w.saves()
		open := w.hold()
		w.closeInAPI()
		tools := w.watchTools()
		w.run(binary, tools)

		w.expectOneRestorePerFamily(tools)
		w.expectOnlyClosedChanged(written, w.saves())
		must(w.t, traffic.Alive(w.ctx, 1, open...))
		w.expectClosed()
	})
}

// closeInAPI annotates the Services that are named so.
func (w *takenNode) closeInAPI() {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"topologyKeys":"[\"%s\"]"}}}`, netns.UnitKey)
	for _, s := range subjects() {
		if !isClosed(s.name) {
			continue
		}
		_, err := w.api.CoreV1().Services("default").Patch(w.ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
		must(w.t, err)
	}
}

// run starts the daemon with its tools watched, and returns when it is ready.
func (w *takenNode) run(binary string, tools counters) {
	w.t.Helper()
	daemon := w.startDaemon("gridproxy", binary, []string{tools.path()})
	w.ready(daemon, 10256)
}

func (w *takenNode) ready(daemon *apiserver.Child, port uint16) {
	w.t.Helper()
	healthz := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	must(w.t, daemon.WaitFor(wait.Usual.Context(w.t), func(ctx context.Context) error {
		page, err := w.node.Get(ctx, healthz, "/readyz")
		return errors.Join(err, wait.Check(page.Code == http.StatusOK, "/readyz answers %d: %s", page.Code, page.Text))
	}))
}
