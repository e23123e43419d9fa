package streams

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/promise"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asks is how many questions go to a Service in one way. That one of two endpoints never answers by
// chance has the probability 2^-29.
const asks = 30

// row is who asks, and how often which Pod answered.
type row struct {
	name, machine string // the machine whose rules decide
	ways          []traffic.Way
	answers       map[string]int
}

// rows are all places that ask a Service: the client's Pod on each machine, the machine itself, and
// the client outside by the NodePort of the machine if there is one.
func (w *world) rows(service string) []row {
	w.t.Helper()
	var all []row
	s := w.service(service)
	families := w.familiesOf(service)
	for _, m := range w.Machines() {
		pod := row{name: "Pod", machine: m.Name}
		self := row{name: "machine", machine: m.Name}
		outside := row{name: "outside, NodePort", machine: m.Name}
		for _, f := range families {
			pod.ways = append(pod.ways, w.fromPod(m.Name, service, f))
			self.ways = append(self.ways, w.fromMachine(m.Name, service, f))
			if s.Spec.Ports[0].NodePort != 0 {
				outside.ways = append(outside.ways, w.fromOutside(m.Name, service, f))
			}
		}
		all = append(all, pod, self)
		if len(outside.ways) > 0 {
			all = append(all, outside)
		}
	}
	return all
}

func (w *world) ask(service string) []row {
	w.t.Helper()
	all := w.rows(service)
	var done sync.WaitGroup
	for i := range all {
		r := &all[i]
		r.answers = map[string]int{}
		done.Go(func() {
			for _, way := range r.ways {
				for range asks {
					pod, err := w.client.Ask(way)
					if err != nil {
						w.t.Errorf("%s: %v", way, err)
						return
					}
					r.answers[pod]++
				}
			}
		})
	}
	done.Wait()
	return all
}

// units are the machines, by the value of their label.
func (w *world) units() map[string]string {
	w.t.Helper()
	nodes, err := w.Client.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
	w.must(err)
	all := map[string]string{}
	for _, n := range nodes.Items {
		all[n.Name] = n.Labels[netns.UnitKey]
	}
	return all
}

// blocks asks a Service from everywhere, prints who answered whom, and wants that every way is answered
// by each of the endpoints in the unit of its machine and by no other. pods are the endpoints' machines.
func (w *world) blocks(service string, pods map[string]string) {
	w.t.Helper()
	units := w.units()
	columns := slices.SortedFunc(maps.Keys(pods), func(a, b string) int { return strings.Compare(pods[a]+a, pods[b]+b) })
	fmt.Fprintf(os.Stderr, "\n%s: who answered whom\n  %-34s", service, "")
	for _, pod := range columns {
		fmt.Fprintf(os.Stderr, " %6s", pods[pod])
	}
	fmt.Fprintln(os.Stderr)
	for _, r := range w.ask(service) {
		fmt.Fprintf(os.Stderr, "  %-10s %-23s", units[r.machine], r.machine+" "+r.name)
		for _, pod := range columns {
			inside := units[pods[pod]] == units[r.machine]
			switch n := r.answers[pod]; {
			case n > 0 && !inside:
				promise.Broken(w.t, promise.Closure, "%s, %s (%s, %s): %s on %s (%s) answered %d times", service, r.name, r.machine, units[r.machine], pod, pods[pod], units[pods[pod]], n)
			case n == 0 && inside:
				w.t.Errorf("%s, %s (%s, %s): %s on %s did not answer", service, r.name, r.machine, units[r.machine], pod, pods[pod])
			}
			fmt.Fprintf(os.Stderr, " %6d", r.answers[pod])
			delete(r.answers, pod)
		}
		fmt.Fprintln(os.Stderr)
		if len(r.answers) > 0 {
			promise.Broken(w.t, promise.Closure, "%s, %s (%s): Pods answered that are no endpoints: %v", service, r.name, r.machine, r.answers)
		}
	}
}

// on turns what podsOf returns into the machine of each Pod.
func on(pods map[string]string) map[string]string {
	all := map[string]string{}
	for machine, pod := range pods {
		all[pod] = machine
	}
	return all
}

// wantClosed: every Service that is closed is answered inside the caller's unit, and by all that is there.
func (w *world) wantClosed() {
	w.t.Helper()
	w.ruled("closed", "closed-host", "servicegrid-demo-svc")
	w.blocks("closed", on(w.podsOf("backend")))
	w.blocks("closed-host", on(w.podsOf("host-backend")))
	list, err := w.Client.CoreV1().Pods("default").List(w.t.Context(), metav1.ListOptions{LabelSelector: "appGrid=echo"})
	w.must(err)
	grid := map[string]string{}
	for _, p := range list.Items {
		grid[p.Name] = p.Spec.NodeName
	}
	w.blocks("servicegrid-demo-svc", grid)
}

// wantMove: a machine whose label changes moves to the other unit, as a caller and with its endpoints,
// and back.
func (w *world) wantMove() {
	w.t.Helper()
	for _, unit := range []string{netns.Beijing, netns.Guangzhou} {
		w.MustKubectl(w.t, "label", "node", "gz-1", "--overwrite", netns.UnitKey+"="+unit)
		units, pods := w.units(), on(w.podsOf("backend"))
		wait.Until(w.t, "gz-1 is in unit "+unit+" everywhere", func() error {
			for _, m := range w.Machines() {
				if err := w.leads(m.Name, "closed", count(pods, units, units[m.Name])); err != nil {
					return err
				}
			}
			return nil
		})
		fmt.Fprintf(os.Stderr, "\ngz-1 is labelled %s=%s:", netns.UnitKey, unit)
		w.blocks("closed", pods)
	}
}

// leads says by an error that the rules of a machine do not lead to so many endpoints of a Service, in each
// family.
func (w *world) leads(machine, service string, want int) error {
	for _, f := range netns.Families() {
		nat, err := w.nat(machine, f)
		if got := endpointsOf(nat, "default/"+service+`"`); err == nil && got != want {
			err = fmt.Errorf("the %s rules of %s lead to %d endpoints of Service %s, want %d", f, machine, got, service, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count is how many Pods are in a unit.
func count(pods, units map[string]string, unit string) int {
	n := 0
	for _, machine := range pods {
		if units[machine] == unit {
			n++
		}
	}
	return n
}
