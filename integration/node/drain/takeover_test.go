package drain

import (
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
)

// After a real kube-proxy in IPVS mode, either mode of ours takes over without losing a connection:
// short ones are answered all the while, and open ones go on. Of kube-proxy's servers, sets, addresses
// and chains nothing is left that ours do not need: the state is the one that gridproxy writes on an
// empty node.
func TestTakeOver(t *testing.T) {
	for _, mode := range []string{"ipvs", "iptables"} {
		t.Run(mode, func(t *testing.T) {
			needIPVS(t)
			w := newWorld(t, "nft")
			for _, last := range []byte{plain, sticky, local} {
				w.Serve(newService(last), w.unit()...)
			}
			k := w.startKubeProxy()
			running := w.start()
			k.Stop(syscall.SIGTERM, time.Minute)
			w.more(running.Calls, 2)
			w.run(mode)
			w.more(running.Calls, 4)
			w.alive(running.Flows)
			w.none(running.Calls)
			traffic.End(running.Flows)
			w.settlesAsNew(mode)
		})
	}
}

// settlesAsNew waits until the node is as gridproxy leaves an empty one.
func (w *world) settlesAsNew(mode string) {
	w.t.Helper()
	wait.Until(w.t, "no foreign set is left", w.noForeignSets)
	taken, rules := w.IPVSState(here), w.rules()
	w.Stop(here, false)
	w.Command(here, "", w.Program, "cleanup", "--proxy-mode", mode, "--iptables-variant", w.Variant)
	w.clean()
	w.run(mode)
	w.settles(taken)
	w.Must(netns.CompareLines(w.rules(), rules))
}
