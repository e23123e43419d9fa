package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/document"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// migrationCluster is a cluster with kube-proxy, and a reader of the document.
type migrationCluster struct {
	*machines.Cluster
	t        *testing.T
	shell    document.Shell
	manifest string // of kube-proxy
}

// grace is short, so that a Node that is away is soon known to be.
const grace = 6 * time.Second

func guide() document.Document {
	return document.Document{Path: "../../docs/migrate-from-kube-proxy.md"}
}

func newMigrationCluster(t *testing.T) *migrationCluster {
	t.Helper()
	specs := slices.DeleteFunc(machines.Manual(), func(s machines.Spec) bool { return s.Name != "bj-1" && s.Name != "gz-1" })
	specs[0].Variant, specs[1].Variant = apiserver.NFT, apiserver.Legacy
	helm, err := apiserver.EnsureHelm(t.Context(), os.Stderr)
	must(t, err)
	w := &migrationCluster{t: t, Cluster: machines.ForTest(t, machines.Options{Machines: specs, NodeGrace: grace, Images: []machines.Image{machines.ImageForTest(t, machines.Gridproxy)}})}
	w.shell = document.NewShell(t, w.Admin(), map[string]string{"kubectl": w.Tools().Path("kubectl"), "helm": helm})
	w.shell.Link(t, "deploy", "../../deploy")
	w.shell.Namespace = w.Namespace()
	begin := time.Now()
	w.manifest, err = w.KubeProxy(t.Context(), "iptables", "")
	must(w.t, err)
	w.manifest = strings.Replace(w.manifest, `maxUnavailable: "100%"`, "maxUnavailable: 1", 1) // as kubeadm's
	w.Apply(t, w.manifest)
	services, err := os.ReadFile("testdata/services.yaml")
	must(w.t, err)
	w.Apply(t, string(services))
	w.MustKubectl(t, "--namespace=kube-system", "rollout", "status", "daemonset/kube-proxy", "--timeout=120s")
	w.MustKubectl(t, "rollout", "status", "daemonset/echo", "--timeout=120s")
	t.Logf("kube-proxy and Pods are ready after further %s", time.Since(begin).Round(10*time.Millisecond))
	return w
}

// follow does what the document says below a heading, and prints how long it took.
func (w *migrationCluster) follow(heading string) string {
	w.t.Helper()
	begin := time.Now()
	out := w.shell.Follow(w.t, guide(), heading)
	w.t.Logf("%s: %s", heading, time.Since(begin).Round(10*time.Millisecond))
	return out
}

// answering are the machines whose Pods answer a Service, asked from a machine itself and through every
// machine's NodePort, in both families.
func (w *migrationCluster) answering(from, service string) (string, error) {
	s, err := w.Client.CoreV1().Services("default").Get(w.t.Context(), service, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	var to []netip.AddrPort
	for _, ip := range s.Spec.ClusterIPs {
		to = append(to, netip.AddrPortFrom(netip.MustParseAddr(ip), 80))
	}
	for _, a := range w.Machine(from).Addrs {
		to = append(to, netip.AddrPortFrom(a, uint16(s.Spec.Ports[0].NodePort)))
	}
	said := map[string]struct{}{}
	for _, addr := range to {
		here := map[string]struct{}{}
		for range 8 { // in four ways: that only the right one of two answers by chance has the probability 2^-32
			ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
			page, err := w.Machine(from).Namespace.Get(ctx, addr, "/")
			cancel()
			if err != nil {
				return "", err
			}
			m := nodeName.FindSubmatch(page.Text)
			if m == nil {
				return "", fmt.Errorf("%s answered %q", addr, page.Text)
			}
			here[string(m[1])] = struct{}{}
		}
		said[strings.Join(slices.Sorted(maps.Keys(here)), " ")] = struct{}{}
	}
	return strings.Join(slices.Sorted(maps.Keys(said)), ", or "), nil
}

var nodeName = regexp.MustCompile(`node name:\s*(\S+)`)

// wantAnswers waits until a Service is answered by the Pods of these machines: by each, and by no other.
func (w *migrationCluster) wantAnswers(service, from, by string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("%s answers %s from %s", service, from, by), func() error {
		got, err := w.answering(from, service)
		return errors.Join(err, wait.Check(got == by, "%q answer", got))
	})
}

// wantOpen: every machine is answered by all.
func (w *migrationCluster) wantOpen(services ...string) {
	w.t.Helper()
	for _, service := range services {
		for _, m := range w.Machines() {
			w.wantAnswers(service, m.Name, "bj-1 gz-1")
		}
	}
}

// wantProxies: these machines have a Pod of a DaemonSet that is ready.
func (w *migrationCluster) wantProxies(namespace, label, on string) {
	w.t.Helper()
	wait.Until(w.t, label+" on "+on, func() error {
		list, err := w.Client.CoreV1().Pods(namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return err
		}
		var nodes []string
		for _, p := range list.Items {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					nodes = append(nodes, p.Spec.NodeName)
				}
			}
		}
		slices.Sort(nodes)
		got := strings.Join(nodes, " ")
		return wait.Check(got == on && len(list.Items) == len(nodes), "%d Pods, ready on %q", len(list.Items), got)
	})
}

// rules returns what a machine's kernel holds, by family, without counters and the like, which
// change without a writer; sorted, because that is enough to see what came and went.
func (w *migrationCluster) rules(machine string) string {
	w.t.Helper()
	var lines []string
	for _, tool := range []string{"iptables-save", "ip6tables-save"} {
		out, err := w.Machine(machine).Run(w.t.Context(), nil, tool)
		must(w.t, err)
		table := ""
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(counters.ReplaceAllString(line, ""))
			if strings.HasPrefix(line, "*") {
				table = line
			}
			if strings.HasPrefix(line, ":KUBE") || strings.HasPrefix(line, ":GRID") || strings.HasPrefix(line, "-A ") {
				lines = append(lines, tool+" "+table+" "+line)
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var counters = regexp.MustCompile(`\[\d+:\d+\]|-m nfacct --nfacct-name +\S+ `)

func (w *migrationCluster) allRules() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, m := range w.Machines() {
		all[m.Name] = w.rules(m.Name)
	}
	return all
}
