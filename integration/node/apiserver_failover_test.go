package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/apiserver"
	controlplane "gridproxy/integration/env/apiserver"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// TestFailover gives the source the addresses of two API servers and a Pod's credentials. Whichever of
// them is killed, or hangs, the source goes on with the other, and has never less than it had.
func TestFailover(t *testing.T) {
	// A server that hangs is found out by HTTP/2, in 45 seconds by default.
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "5")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "2")
	w := newWatchedCluster(t)
	second, err := w.AddAPIServer(w.ctx)
	must(t, err)
	kept := []string{w.load.addKept(), w.load.addKept(), w.load.addKept()}
	w.load.fill(5)
	// The second one is reached through the Link, which can let it hang.
	link, err := w.NewLink(second)
	must(t, err)
	t.Cleanup(link.Close)
	w.watchAs(w.inPod(w.API.Addr.String(), link.Addr.String()))
	w.settle()
	if link.Opened() > 0 {
		t.Error("the second server is asked though the first one answers")
	}

	moved := func(what string, to *controlplane.APIServer) {
		t.Helper()
		w.api = controlplane.ClientForTest(w.t, w.AdminAt(to.Addr))
		w.load.on(w.api)
		began := time.Now()
		lost := w.loses(kept...)
		w.load.change(10)
		w.settle()
		if problem := lost(); problem != "" {
			t.Errorf("%s: %s", what, problem)
		}
		t.Logf("%s: changes made at the other one are known after %s", what, time.Since(began).Round(time.Millisecond))
	}
	w.API.Stop()
	moved("the first server is killed", second)
	must(t, w.API.Start(w.ctx))
	link.Stall()
	moved("the second server hangs", w.API)
}

// loses looks at every Snapshot until the function that it returns is called, and reports through
// that whether one was not whole, or without one of some Services.
func (w *watchedCluster) loses(services ...string) (problem func() string) {
	ctx, end := context.WithCancel(w.ctx)
	result := make(chan string, 1)
	look := func() string {
		s, whole := w.source.Snapshot()
		if !whole {
			return "a Snapshot is not whole"
		}
		for _, name := range services {
			if !slices.ContainsFunc(s.Services, func(svc *corev1.Service) bool { return svc.Name == name }) {
				return fmt.Sprintf("Service %s is gone; of all, %d are left", name, len(s.Services))
			}
		}
		return ""
	}
	go func() {
		found := look()
		for ; found == "" && ctx.Err() == nil; found = look() {
			select {
			case <-ctx.Done():
			// real time: a wrong Snapshot may last for a moment, so it looks often
			case <-time.After(time.Millisecond):
			}
		}
		result <- found
	}()
	return func() string {
		end()
		return <-result
	}
}

// inPod is a configuration with the credentials of a Pod that may do what the daemon may.
func (w *watchedCluster) inPod(servers ...string) *rest.Config {
	w.t.Helper()
	account := w.serviceAccount(minimal(w.t))
	dir := w.t.TempDir()
	for name, text := range map[string][]byte{"token": []byte(account.BearerToken), "ca.crt": account.CAData} {
		must(w.t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	config, err := apiserver.Config(servers, "n1", dir, slog.New(slog.DiscardHandler)) // a node that begins with the first of two
	must(w.t, err)
	config.QPS = -1
	return config
}
