package drain

import (
	"syscall"
	"testing"
	"time"
)

// kube-proxy itself, in IPVS mode, in the world of these tests.
func TestKubeProxy(t *testing.T) {
	needIPVS(t)
	w := newWorld(t, "nft")
	for _, last := range []byte{plain, sticky, local} {
		w.serve(newService(last), w.unit()...)
	}
	start := time.Now()
	k := w.startKubeProxy()
	t.Logf("kube-proxy's first sync took %s", time.Since(start))
	flows := w.hold(w.unit(), w.routes(plain)...)
	c := w.call(w.routes(plain)...)
	w.more(c, 5)
	k.Stop(syscall.SIGTERM, time.Minute)
	w.more(c, 5)
	w.alive(flows)
	w.none(c)
	t.Log(join(w.ipvs()))
	t.Log(join(w.rules()))
}
