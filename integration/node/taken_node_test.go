package node

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// takenNode is a node where kube-proxy has run, and is to be taken over.
type takenNode struct {
	labCluster
	variant apiserver.Variant
	dir     string // for files
}

func eachVariant(t *testing.T, run func(t *testing.T, w *takenNode, binary string)) {
	need.IPTables(t)
	binary := program.ForTest(t, program.Gridproxy)
	for _, variant := range []apiserver.Variant{apiserver.NFT, apiserver.Legacy} {
		t.Run(string(variant), func(t *testing.T) { run(t, newTakenNode(t, variant), binary) })
	}
}

func newTakenNode(t *testing.T, variant apiserver.Variant) *takenNode {
	t.Helper()
	w := &takenNode{labCluster: newLabCluster(t), variant: variant, dir: t.TempDir()}
	for i, s := range subjects() {
		w.addService(s, i+1)
	}
	return w
}

func (w *takenNode) addService(s subject, number int) {
	w.t.Helper()
	services := w.api.CoreV1().Services("default")
	svc, err := services.Create(w.ctx, s.object(number), metav1.CreateOptions{})
	must(w.t, err)
	s.ingress(svc, number)
	svc, err = services.UpdateStatus(w.ctx, svc, metav1.UpdateOptions{})
	must(w.t, err)
	for _, slice := range s.slices(svc, number, w.Lab) {
		_, err := w.api.DiscoveryV1().EndpointSlices("default").Create(w.ctx, slice, metav1.CreateOptions{})
		must(w.t, err)
	}
}

// letKubeProxyWrite runs kube-proxy until its rules hold every Service, then ends it as a rollout
// does.
func (w *takenNode) letKubeProxyWrite() {
	w.t.Helper()
	proxy := w.kubeProxy()
	defer proxy.Stop(syscall.SIGTERM, 5*time.Second)
	must(w.t, proxy.WaitFor(wait.Usual.Context(w.t), func(ctx context.Context) error {
		for _, family := range families {
			save := w.save(family)
			for _, s := range subjects() {
				if !strings.Contains(save, "default/"+s.name) {
					return fmt.Errorf("%s has no rule for Service %s", family, s.name)
				}
			}
		}
		return nil
	}))
}

func (w *takenNode) kubeProxy() *apiserver.Child {
	w.t.Helper()
	proxy, err := apiserver.KubeProxy{
		Tools: w.Cluster.Tools(), Dir: w.dir, Namespace: w.node, API: w.Admin(), Node: here,
		Variant: w.variant, ClusterCIDRs: netns.ClusterCIDRs(), MinSyncPeriod: time.Second, Env: w.node.Env,
	}.Start()
	must(w.t, err)
	return proxy
}

// startDaemon starts gridproxy on the node. It ends with the test at the latest.
func (w *takenNode) startDaemon(name, binary string, env []string, flags ...string) *apiserver.Child {
	w.t.Helper()
	child, err := apiserver.StartChild(apiserver.Spec{
		Name: name, Path: binary, Dir: w.dir, Namespace: w.node,
		Args: slices.Concat([]string{"run"}, w.flags(), flags), Env: append(env, w.node.Env...),
	})
	must(w.t, err)
	w.t.Cleanup(func() { child.Stop(syscall.SIGTERM, 5*time.Second) })
	return child
}

var families = []string{"iptables", "ip6tables"}

// save returns what the node's tables filter and nat hold, without what changes when no rule does:
// the dates and the packet counters of the built-in chains.
func (w *takenNode) save(family string) string {
	w.t.Helper()
	var all strings.Builder
	for _, table := range []string{"filter", "nat"} {
		text, err := w.node.Save(w.ctx, fmt.Sprintf("%s-%s-save", family, w.variant), "-t", table)
		must(w.t, err)
		lines := bufio.NewScanner(strings.NewReader(text))
		for lines.Scan() {
			line := lines.Text()
			if strings.HasPrefix(line, "#") {
				continue
			}
			if strings.HasPrefix(line, ":") {
				line = line[:strings.LastIndex(line, " ")]
			}
			all.WriteString(line + "\n")
		}
	}
	return all.String()
}

func (w *takenNode) saves() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, family := range families {
		all[family] = w.save(family)
	}
	return all
}

// counters counts how often tools were run, by standing before them in PATH.
type counters struct {
	dir string
	log string
}

// watchedRestore does not count inputs that name KUBE-SCRATCH alone: a daemon makes and removes
// that chain, which nothing leads to, to find out what the kernel can do.
const watchedRestore = `#!/bin/sh
input=$(mktemp) || exit 4
trap 'rm -f "$input"' EXIT
cat >"$input"
if grep '^[:-]' "$input" | grep -qv KUBE-SCRATCH; then
	echo %[1]s "$@" >>%[2]s
fi
%[3]s "$@" <"$input"
`

// watchTools makes a folder with a stand-in for every tool that can write rules.
func (w *takenNode) watchTools() counters {
	w.t.Helper()
	c := counters{dir: filepath.Join(w.dir, "watched"), log: filepath.Join(w.dir, "tools.log")}
	must(w.t, os.MkdirAll(c.dir, 0o755))
	for _, family := range families {
		for _, kind := range []string{"", "-restore"} {
			name := fmt.Sprintf("%s-%s%s", family, w.variant, kind)
			real, err := exec.LookPath(name)
			must(w.t, err)
			script := fmt.Sprintf("#!/bin/sh\necho %s \"$@\" >> %s\nexec %s \"$@\"\n", name, c.log, real)
			if kind == "-restore" {
				script = fmt.Sprintf(watchedRestore, name, c.log, real)
			}
			must(w.t, os.WriteFile(filepath.Join(c.dir, name), []byte(script), 0o755))
		}
	}
	return c
}

// path returns the environment variable that puts the stand-ins first.
func (c counters) path() string { return "PATH=" + c.dir + ":" + os.Getenv("PATH") }

// writes are the runs that may have written since the last call: all restores, and every run of
// iptables that is neither a check, a list nor a question for its version.
func (c counters) writes(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(c.log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	must(t, os.WriteFile(c.log, nil, 0o644))
	var writes []string
	for line := range strings.Lines(string(bytes.TrimSpace(content))) {
		if !harmless(strings.Fields(line)[1:]) {
			writes = append(writes, strings.TrimSpace(line))
		}
	}
	return writes
}

func harmless(args []string) bool {
	for _, a := range args {
		switch a {
		case "--version", "-V", "--help", "-h", "-C", "--check", "-S", "--list-rules", "-L", "--list":
			return true
		}
	}
	return false
}

// hold opens a connection to each endpoint of closed-live, which asks again and again.
func (w *takenNode) hold() []*traffic.Flow {
	w.t.Helper()
	client := &traffic.Client{Who: traffic.OfLab}
	flows, err := client.Hold([]string{"beijing-v9zdr", "guangzhou-hhmt2"}, traffic.Way{From: w.Client(here).Namespace, To: w.vip("closed-live")})
	must(w.t, err)
	w.t.Cleanup(func() { traffic.End(flows) })
	return flows
}

// expectClosed asks often enough that an endpoint outside of the unit would have answered; from the
// Pod of the node unless said otherwise.
func (w *takenNode) expectClosed(from ...*netns.Namespace) {
	w.t.Helper()
	from, to := append(from, w.Client(here).Namespace), w.vip("closed-live")
	for range 30 {
		answer, err := from[0].Fetch(w.ctx, to)
		must(w.t, err)
		if answer.Node != "bj-3" {
			w.t.Fatalf("a new connection left the unit: %v", answer)
		}
	}
}

// vip is a Service's cluster IP and first port.
func (w *takenNode) vip(service string) netip.AddrPort {
	w.t.Helper()
	svc, err := w.api.CoreV1().Services(corev1.NamespaceDefault).Get(w.ctx, service, metav1.GetOptions{})
	must(w.t, err)
	addr, err := netip.ParseAddr(svc.Spec.ClusterIP)
	must(w.t, err)
	return netip.AddrPortFrom(addr, uint16(svc.Spec.Ports[0].Port))
}
