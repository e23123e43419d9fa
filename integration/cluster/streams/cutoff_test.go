package streams

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cutOff cuts the unit of Beijing off from the cloud and from the other unit, and asks a Service 8 times
// from each Pod of a client and each machine in it. It notes how many of these were answered to a client. That the
// cloud gives the machines up later changes nothing, for they cannot hear of it.
func (w *world) cutOff(proxy, service string, client *traffic.Client) (answered, asked int) {
	w.t.Helper()
	inside := []string{"bj-1", "bj-2"}
	w.isolate(inside...)
	var good atomic.Int64
	var done sync.WaitGroup
	for _, m := range inside {
		for _, way := range []traffic.Way{w.fromPod(m, service, netns.IPv4), w.fromMachine(m, service, netns.IPv6)} {
			for range 8 {
				asked++
				done.Go(func() {
					if _, err := client.Ask(way); err == nil {
						good.Add(1)
					}
				})
			}
		}
	}
	done.Wait()
	w.mend(inside...)
	w.note("a unit cut off from the cloud, %s: %d of %d connections inside it are answered", proxy, good.Load(), asked)
	return int(good.Load()), asked
}

// isolate drops every packet between some machines and the rest of the cluster.
func (w *world) isolate(machines ...string) {
	w.t.Helper()
	for _, m := range machines {
		for _, f := range netns.Families() {
			var script strings.Builder
			script.WriteString("*raw\n")
			for _, far := range w.beyond(f, machines) {
				fmt.Fprintf(&script, "-A PREROUTING -s %s -j DROP\n-A PREROUTING -d %[1]s -j DROP\n-A OUTPUT -d %[1]s -j DROP\n", far)
			}
			script.WriteString("COMMIT\n")
			_, err := w.run(m, fmt.Sprintf("%s-restore --noflush --wait=60 <<'END'\n%sEND\n", tool(m, f), script.String()))
			w.must(err)
		}
	}
}

func (w *world) mend(machines ...string) {
	w.t.Helper()
	for _, m := range machines {
		for _, f := range netns.Families() {
			_, err := w.run(m, tool(m, f)+" --wait=60 -t raw -F")
			w.must(err)
		}
	}
}

// beyond are the addresses of the API servers, of other machines and of their Pods.
func (w *world) beyond(f netns.Family, machines []string) []string {
	w.t.Helper()
	var all []string
	for _, api := range w.APIServers() {
		if f.Has(api.Addr()) {
			all = append(all, api.Addr().String())
		}
	}
	for _, m := range w.Machines() {
		if slices.Contains(machines, m.Name) {
			continue
		}
		all = append(all, m.Namespace.Addr(f).String())
		node, err := w.Client.CoreV1().Nodes().Get(w.t.Context(), m.Name, metav1.GetOptions{})
		w.must(err)
		for _, cidr := range node.Spec.PodCIDRs {
			if strings.Contains(cidr, ":") == (f == netns.IPv6) {
				all = append(all, cidr)
			}
		}
	}
	return all
}
