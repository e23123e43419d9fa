package cluster

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The manual's Grid and Service.
const (
	manualGrid    = "statefulsetgrid-demo"
	manualService = "servicegrid-demo-svc.default.svc.cluster.local"
)

// manual is SuperEdge's manual about headless Services, on the shipped sample: each unit has its
// own Pods under the names that are the same everywhere. The whole Service has this unit's Pods,
// where the manual shows those of all units.
func (w *namesCluster) manual() {
	w.t.Helper()
	w.ApplyFile(w.t, source+"/deploy/samples/headless")
	for _, unit := range []string{"beijing", "guangzhou"} {
		w.rolledOut(manualGrid + "-" + unit)
	}
	for machine, unit := range unitOf() {
		w.becomes(machine, manualGrid+"-2."+manualService, w.address(manualGrid+"-"+unit+"-2"))
	}
	w.allCounted(func() {
		for _, machine := range slices.Sorted(maps.Keys(unitOf())) {
			w.lookUp(machine)
		}
	})
	for machine, unit := range unitOf() {
		w.reached(machine, manualGrid+"-1."+manualService, manualGrid+"-"+unit+"-1")
	}
}

// lookUp is the manual's transcript on one machine.
func (w *namesCluster) lookUp(machine string) {
	w.t.Helper()
	unit := unitOf()[machine]
	other := "guangzhou"
	if unit == other {
		other = "beijing"
	}
	var pods []string
	for n := range 3 {
		addr := w.address(fmt.Sprintf("%s-%s-%d", manualGrid, unit, n))
		pods = append(pods, addr)
		w.transcript(machine, fmt.Sprintf("%s-%d.%s", manualGrid, n, manualService), addr)
		w.transcript(machine, fmt.Sprintf("%s-%s-%d.%s", manualGrid, unit, n, manualService), addr)
		w.transcript(machine, fmt.Sprintf("%s-%s-%d.%s", manualGrid, other, n, manualService), "NXDOMAIN")
	}
	slices.Sort(pods)
	w.transcript(machine, manualService, strings.Join(pods, " "))
	w.transcript(machine, manualGrid+"-3."+manualService, "NXDOMAIN")
}

// transcript prints what nslookup would, and checks it.
func (w *namesCluster) transcript(machine, name, want string) {
	w.t.Helper()
	got, err := w.asks(machine, name, dns.TypeA)
	must(w.t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "[client on %s ~]# nslookup %s\nServer:         %s\n", machine, name, clusterDNS().Addr())
	if strings.Contains(got, ".") {
		for _, addr := range strings.Fields(got) {
			fmt.Fprintf(&b, "Name:   %s\nAddress: %s\n", name, addr)
		}
	} else {
		fmt.Fprintf(&b, "** server can't find %s: %s\n", name, got)
	}
	w.t.Log(b.String())
	if got != want {
		w.t.Errorf("on %s, %s is %q; want %q", machine, name, got, want)
	}
}

// reached checks that a program in the Pod of a machine reaches a Pod by its name.
func (w *namesCluster) reached(machine, name, pod string) {
	w.t.Helper()
	out, err := w.Exec(w.t.Context(), metav1.NamespaceDefault, w.clients[machine].Name, "echo-client", "get", "http://"+name+":8080/")
	if err != nil || !strings.Contains(out, "pod name:\t"+pod) {
		w.t.Errorf("from %s, http://%s is answered (%v): %q; want %s", machine, name, err, out, pod)
	}
}

// rolledOut waits for the Pods of a StatefulSet, which may not be there yet.
func (w *namesCluster) rolledOut(set string) {
	w.t.Helper()
	wait.Until(w.t, set+" is there", func() error {
		_, err := w.Kubectl("get", "statefulset", set)
		return err
	})
	w.MustKubectl(w.t, "rollout", "status", "statefulset/"+set, "--timeout=120s")
}

func (w *namesCluster) address(pod string) string {
	w.t.Helper()
	p, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).Get(w.t.Context(), pod, metav1.GetOptions{})
	must(w.t, err)
	return p.Status.PodIP
}

// gridNames are names that SuperEdge's hosts file took apart wrongly: by the first place where a
// unit's value occurs (zone-app in zone, a-db in a), by the end of another Grid's name (foo-web and
// web), by a length (the set x).
func (w *namesCluster) gridNames() {
	w.t.Helper()
	w.applyFiles("testdata/dns_grids.yaml")
	grid, err := os.ReadFile("testdata/dns_grid.yaml")
	must(w.t, err)
	grids := []string{"zone-app", "a-db", "web", "foo-web"}
	for _, name := range grids {
		w.Apply(w.t, strings.ReplaceAll(string(grid), "GRID", name))
	}
	w.rolledOut("x")
	zones := map[string]string{"bj-1": "zone", "gz-1": "a"}
	for _, name := range grids {
		for machine, zone := range zones {
			w.rolledOut(name + "-" + zone)
			w.becomes(machine, name+"-0.hosts-svc.default.svc.cluster.local", w.address(name+"-"+zone+"-0"))
		}
	}
	w.becomes("bj-1", "x-0.hosts-svc.default.svc.cluster.local", w.address("x-0"))
	wrong := []string{"app-zone-0", "db-a-0", "app-0", "db-0", "zone-app-a-0", "a-db-zone-0"}
	w.allCounted(func() {
		for _, machine := range []string{"bj-1", "gz-1"} {
			for _, name := range wrong {
				if own := strings.HasSuffix(name, "-"+zones[machine]+"-0") && !slices.Contains(wrong[:4], name); !own {
					must(w.t, w.check(machine, expectedName{name: name + ".hosts-svc.default.svc.cluster.local", qtype: dns.TypeA, beijing: "NXDOMAIN"}))
				}
			}
		}
		must(w.t, w.check("bj-1", expectedName{name: "x-0.hosts-svc.default.svc.cluster.local", qtype: dns.TypeA, beijing: w.address("x-0")}))
		must(w.t, w.check("gz-1", expectedName{name: "x-0.hosts-svc.default.svc.cluster.local", qtype: dns.TypeA, beijing: "NXDOMAIN"}))
	})
	// A change of web touches nothing of foo-web; its Pod that goes is gone at once.
	foo := w.address("foo-web-zone-0")
	w.MustKubectl(w.t, "patch", "statefulsetgrid", "web", "--type=merge", `--patch={"spec":{"template":{"replicas":0}}}`)
	w.becomes("bj-1", "web-0.hosts-svc.default.svc.cluster.local", "NXDOMAIN")
	must(w.t, w.check("bj-1", expectedName{name: "foo-web-0.hosts-svc.default.svc.cluster.local", qtype: dns.TypeA, beijing: foo}))
}
