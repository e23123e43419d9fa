package streams

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/traffic"
)

// One cluster, from kube-proxy to gridproxy and back. Each step begins where the one before it ended.
func TestStreams(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(w.print)
	w.startKubeProxy()
	w.serve()
	w.ruled("plain", "closed", "closed-host")
	theirs := w.measure("kube-proxy")
	// Half of it is not answered. The test only reports that, and need not wait for it.
	w.cutOff("kube-proxy", "plain", &traffic.Client{Who: w.client.Who, Deadline: 3 * time.Second})

	w.open()
	w.during("nothing, with kube-proxy", func() { w.must(w.traffic.Calls.More(t.Context(), 5)) })
	w.during("take-over from kube-proxy", w.takeOver)
	w.openClosed()
	w.during("restart of every daemon, one by one", func() {
		for _, m := range w.Machines() {
			w.end(m.Name, syscall.SIGTERM)
		}
	})
	w.during(fmt.Sprintf("kill -9 in mid-sync, %d Services", many), w.killInSync)
	w.during("these Services go", func() { w.drop("killed") })
	w.during("helm upgrade, rolling update", w.upgrade)
	w.during("API server killed, started again", w.restartAPIServer)
	w.startGrids()
	w.during("leader of the controllers killed", w.failOver)
	w.during("helm uninstall, kube-proxy again", w.uninstall)
	w.close()

	w.takeOver()
	w.printCosts(theirs, w.measure("gridproxy"))
	w.wantClosed()
	w.wantMove()
	if answered, asked := w.cutOff("gridproxy", "closed", &w.client); answered != asked {
		t.Errorf("a unit that is cut off from the cloud: %d of %d connections inside it were answered", answered, asked)
	}
}
