package cluster

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"gridproxy/integration/env/document"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
	"gridproxy/integration/manifests/chart"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How many queries may be lost of 10,000 or more. When everything ends at once, on a machine with
// too much to do a server may leave more than a second before it has answered all that it got.
const (
	fewLost     = 10
	fewAtTheEnd = 100
)

// dnsPage is what an administrator reads.
func dnsPage() document.Document { return document.Document{Path: source + "/docs/dns.md"} }

// install installs the chart as it is for those who do not want DNS.
func (w *namesCluster) install() {
	w.t.Helper()
	helm, err := chart.New(w.t.Context(), os.Stderr, w.t.TempDir())
	must(w.t, err)
	w.shell = document.NewShell(w.t, w.Admin(), map[string]string{"helm": helm.Path, "kubectl": w.Tools().Path("kubectl")})
	w.shell.Namespace = w.Outside()
	w.shell.Link(w.t, "deploy", source+"/deploy")
	w.types("helm install gridproxy deploy/charts/gridproxy --create-namespace --namespace gridproxy --set crds.install=false --set-json '%s' %s",
		strings.Join(w.Values(), "' --set-json '"), waitFlags)
}

// types runs what an administrator types, and says how long it took.
func (w *namesCluster) types(format string, args ...any) string {
	w.t.Helper()
	return w.shell.Type(w.t, format, args...)
}

// follows does what the page says below a heading, and waits until each daemon is the new one.
func (w *namesCluster) follows(heading string) {
	w.t.Helper()
	commands, err := dnsPage().Commands(heading)
	must(w.t, err)
	w.types("%s", commands)
	w.types("kubectl --namespace gridproxy rollout status daemonset/gridproxy --timeout=120s")
}

// upgrades changes values, and waits.
func (w *namesCluster) upgrades(values string) {
	w.t.Helper()
	w.types("helm upgrade gridproxy deploy/charts/gridproxy --namespace gridproxy --reset-then-reuse-values %s %s", values, waitFlags)
}

// wired: the only thing that an administrator does is what docs/dns.md says (SuperEdge's manifests
// did not let its DNS server read the records, and its documents do not say how, D-04). Before, a
// closed headless Service has the Pods of all units; afterwards each Pod that was there, and that
// has not been replaced, gets those of its unit, at the address that it has always asked.
func (w *namesCluster) wired() {
	w.t.Helper()
	w.allAnswered(traffic.Remote)
	before := w.podsOfUsers()
	w.follows("Turn it on")
	w.allAnswered(traffic.Local)
	for _, m := range w.Machines() {
		w.isLocal(m.Name)
		set, err := m.Run(w.t.Context(), nil, "ipset", "list", "KUBE-LOCAL-DNS")
		must(w.t, err)
		if !strings.Contains(string(set), clusterDNS().Addr().String()+",udp:53 ") {
			w.t.Errorf("%s leads no queries to its server:\n%s", m.Name, set)
		}
	}
	if after := w.podsOfUsers(); !maps.Equal(before, after) || len(before) < len(w.Machines()) {
		w.t.Errorf("the Pods of users were %v and are %v", before, after)
	}
}

// allAnswered waits until queries from every machine of the units are answered by the server there,
// or by kube-dns, the remote one.
func (w *namesCluster) allAnswered(by traffic.Outcome) {
	w.t.Helper()
	for _, machine := range slices.Sorted(maps.Keys(unitOf())) {
		want := loadedBefore
		if by == traffic.Local {
			want = loadAnswers()[unitOf()[machine]]
		}
		w.becomes(machine, loadName, want)
	}
}

// podsOfUsers are the Pods that are not the chart's, and how often they were started.
func (w *namesCluster) podsOfUsers() map[string]string { return w.podsIn(metav1.NamespaceDefault, "") }

// podsIn are Pods with a label, by name, and how often they were started.
func (w *namesCluster) podsIn(namespace, selector string) map[string]string {
	w.t.Helper()
	list, err := w.Client.CoreV1().Pods(namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: selector})
	must(w.t, err)
	all := map[string]string{}
	for _, p := range list.Items {
		restarts := int32(0)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		all[p.Name] = fmt.Sprintf("%s, restarted %d times", p.UID, restarts)
	}
	return all
}

// switchedOff: dns.enabled=false removes the servers, and what the daemons have added for them.
func (w *namesCluster) switchedOff() {
	w.t.Helper()
	w.whileAsked("dns.enabled=false", fewLost, func() {
		w.follows("Remove it")
		w.allAnswered(traffic.Remote)
	})
	for _, m := range w.Machines() {
		wait.Until(w.t, "nothing of DNS is left on "+m.Name, func() error {
			left := w.leftOfDNS(m.Name)
			return wait.Check(len(left) == 0, "there are %v", left)
		})
	}
}

// leftOfDNS is what a machine has of DNS, by kind.
func (w *namesCluster) leftOfDNS(machine string) map[string][]string {
	w.t.Helper()
	left := map[string][]string{}
	for _, look := range []struct{ kind, command, word string }{
		{"chains", "iptables-save", ":KUBE-LOCAL-DNS "}, {"chains", "ip6tables-save", ":KUBE-LOCAL-DNS "},
		{"rules", "iptables-save", "-A KUBE-LOCAL-DNS "}, {"rules", "ip6tables-save", "-A KUBE-LOCAL-DNS "},
		{"jumps", "iptables-save", "-j KUBE-LOCAL-DNS"}, {"jumps", "ip6tables-save", "-j KUBE-LOCAL-DNS"},
		{"sets", "ipset list", "LOCAL-DNS"}, {"entries", "ipset list", ",udp:53 "}, {"entries", "ipset list", ",tcp:53 "},
		{"addresses", "ip -oneline addr show dev lo", "169.254.20.12/"}, {"addresses", "ip -oneline addr show dev lo", "fd00:6772:6964::12/"},
	} {
		words := strings.Fields(look.command)
		out, err := w.Machine(machine).Run(w.t.Context(), nil, words[0], words[1:]...)
		must(w.t, err)
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, look.word) {
				left[look.kind] = append(left[look.kind], strings.TrimSpace(line))
			}
		}
	}
	return left
}

func (w *namesCluster) switchedOn() {
	w.t.Helper()
	w.whileAsked("dns.enabled=true", fewLost, func() {
		w.follows("Turn it on")
		w.allAnswered(traffic.Local)
	})
}

// upgradedServers: a changed value replaces all servers, and hardly any query reaches kube-dns: on
// a machine with too much to do, a new server may begin late.
func (w *namesCluster) upgradedServers() {
	w.t.Helper()
	const selector = "app.kubernetes.io/name=grid-dns"
	before := w.podsIn(chart.Namespace, selector)
	tally := w.whileAsked("upgrade", fewLost, func() {
		w.upgrades("--set dns.resources.limits.memory=300Mi")
		w.gone(before)
	})
	if n, local := tally.Count[traffic.Remote], tally.Count[traffic.Local]; n > local/100 {
		w.t.Errorf("during the upgrade %d queries were answered by kube-dns, and %d on their machine", n, local)
	}
}

// gone waits until Pods of the chart are gone, with a watch: to list them again and again takes the
// processor time that the servers need.
func (w *namesCluster) gone(pods map[string]string) {
	w.t.Helper()
	names := strings.Join(slices.Sorted(maps.Keys(pods)), " ")
	w.types("kubectl --namespace gridproxy wait --for=delete --timeout=120s pod %s", names)
}

// uninstalled: without the chart DNS is kube-dns' again. Both pages say what stays: all rules,
// those of DNS too, which lead nowhere any more, with their sets and addresses; and what removes
// them.
func (w *namesCluster) uninstalled() {
	w.t.Helper()
	all := w.podsIn(chart.Namespace, "app.kubernetes.io/part-of=gridproxy")
	w.whileAsked("helm uninstall", fewAtTheEnd, func() {
		w.types("helm uninstall gridproxy --namespace gridproxy %s", waitFlags)
		w.allAnswered(traffic.Remote)
		w.gone(all)
	})
	binary := program.ForTest(w.t, program.Gridproxy)
	for _, m := range w.Machines() {
		left := w.leftOfDNS(m.Name)
		figures := fmt.Sprintf("%d chains, %d rules, %d jumps, %d sets, %d entries, %d addresses",
			len(left["chains"]), len(left["rules"]), len(left["jumps"]), len(left["sets"]), len(left["entries"]), len(left["addresses"]))
		w.t.Logf("left on %s: %s", m.Name, figures)
		if want := "4 chains, 12 rules, 6 jumps, 2 sets, 0 entries, 2 addresses"; figures != want {
			w.t.Errorf("left on %s: %v; want %s", m.Name, left, want)
		}
		out, err := m.Run(w.t.Context(), nil, binary, "cleanup")
		must(w.t, err)
		w.t.Logf("cleanup on %s:\n%s", m.Name, out)
		if left := w.leftOfDNS(m.Name); len(left) > 0 {
			w.t.Errorf("after the cleanup %s has %v", m.Name, left)
		}
	}
}
