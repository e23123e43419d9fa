package cluster

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
)

const (
	kubeProxy = "k8s-app=kube-proxy"
	gridproxy = "app.kubernetes.io/name=gridproxy"
	both      = "bj-1 gz-1"
)

func TestDocument(t *testing.T) {
	w := newMigrationCluster(t)
	w.wantOpen("web", "closed")
	w.follow("Say what your cluster is like")
	before := w.allRules()

	w.look(before)
	w.try()
	w.change()
	w.comeBack(before)
	w.leaveSuperEdge()
}

// look: the shadow writes nothing, and names what closure will change and nothing else.
func (w *migrationCluster) look(before map[string]string) {
	const heading = "Look without writing"
	if out := w.follow(heading); strings.Contains(out, "@@") {
		w.t.Errorf("nothing is closed, yet the diff is\n%s", out)
	}
	w.MustKubectl(w.t, "annotate", "service", "closed", `topologyKeys=["location"]`)
	out := w.follow(heading)
	if !strings.Contains(out, "default/closed") || strings.Contains(out, "default/web") {
		w.t.Errorf("one Service is closed, and the diff is\n%s", out)
	}
	if diff := cmp.Diff(before, w.allRules()); diff != "" {
		w.t.Errorf("the shadow changed rules (-before +after):\n%s", diff)
	}
	if more := w.MustKubectl(w.t, "--namespace=gridproxy", "get", "crd,deployment", "--output=name"); more != "" {
		w.t.Errorf("the shadow brought\n%s", more)
	}
	w.wantOpen("web", "closed")
}

// try: one Service is served by chains of other names, and then again by kube-proxy.
func (w *migrationCluster) try() {
	w.shell.Env = []string{"SERVICE=web"}
	w.follow("Try it on one Service")
	w.wantChains("GRID-", "KUBE-", "default/web")
	w.wantOpen("web", "closed")
	w.endTrial()
	w.wantChains("KUBE-", "GRID-", "default/web")
	for machine, rules := range w.allRules() {
		if strings.Contains(rules, "GRID-") {
			w.t.Errorf("after the trial %s holds\n%s", machine, rules)
		}
	}
	w.wantOpen("web", "closed")
}

// endTrial: a Node that is away at the end is named and delays no other; its chains are reported,
// and go when the end is repeated.
func (w *migrationCluster) endTrial() {
	const away = "gz-1"
	must(w.t, w.Machine(away).CutLink())
	w.MustKubectl(w.t, "wait", "node", away, "--for=condition=Ready=Unknown", "--timeout=60s")
	w.follow("End the trial")
	if out := w.shell.Run(w.t, "deploy/on-each-node kubernetes.io/os=linux 2>&1"); out != "not Ready, so left out: "+away+"\n" {
		w.t.Errorf("with %s away it is said:\n%s", away, out)
	}
	rules := w.allRules()
	if strings.Contains(rules["bj-1"], "GRID-") || !strings.Contains(rules[away], "GRID-") {
		w.t.Errorf("with %s away, after the trial there are\n%v", away, rules)
	}
	must(w.t, w.Machine(away).MendLink())
	w.MustKubectl(w.t, "wait", "node", away, "--for=condition=Ready", "--timeout=60s")
	out := w.shell.Run(w.t, "deploy/on-each-node kubernetes.io/os=linux gridproxy diff 2>&1 || test $? -eq 1")
	others, here, _ := strings.Cut(out, "== "+away+"\n")
	const warning = "run gridproxy cleanup with that flag"
	if strings.Contains(others, warning) || !strings.Contains(here, warning) {
		w.t.Errorf("%s has chains that the trial has left, and it is said:\n%s", away, out)
	}
	w.follow("End the trial")
}

// wantChains: on every machine a Service has rules in chains with one prefix, and none with the other.
func (w *migrationCluster) wantChains(with, without, service string) {
	w.t.Helper()
	wait.Until(w.t, service+" is in chains "+with, func() error {
		for machine, rules := range w.allRules() {
			n := map[string]int{}
			for line := range strings.Lines(rules) {
				if _, rule, ok := strings.Cut(line, " -A "); ok && strings.Contains(line, service) {
					n[rule[:len(with)]]++
				}
			}
			if n[with] == 0 || n[without] > 0 {
				return fmt.Errorf("%s has %v", machine, n)
			}
		}
		return nil
	})
}

// change: one machine, then the other.
func (w *migrationCluster) change() {
	w.follow("Let a label choose")
	w.wantProxies("kube-system", kubeProxy, both)
	w.wantProxies("gridproxy", gridproxy, "")
	w.wantOpen("closed")

	w.shell.Env = []string{"NODE=bj-1"}
	begin := time.Now()
	w.follow("Switch one Node")
	w.wantAnswers("closed", "bj-1", "bj-1")
	w.t.Logf("take-over of one machine, from the label to closure and no difference: %s", time.Since(begin).Round(10*time.Millisecond))
	w.wantAnswers("closed", "gz-1", both)
	w.wantProxies("kube-system", kubeProxy, "gz-1")
	w.wantProxies("gridproxy", gridproxy, "bj-1")
	w.shell.Run(w.t, "if WAIT=1 deploy/on-each-node gz-1 gridproxy diff; then exit 1; else test $? -eq 2; fi") // without a daemon

	w.shell.Env = []string{"UNIT=location=guangzhou"}
	w.follow("Switch a unit")
	w.wantProxies("kube-system", kubeProxy, "")
	w.follow("Switch all others")
	// Each Node says whose flags it takes.
	if out := w.follow("Check"); regexp.MustCompile(`(?m)^(== \S+|Flags: from process \d+)\n`).ReplaceAllString(out, "") != "no difference\nno difference\n" {
		w.t.Errorf("after the take-over the diff is\n%s", out)
	}
	w.wantAnswers("closed", "bj-1", "bj-1")
	w.wantAnswers("closed", "gz-1", "gz-1")
	w.wantOpen("web")
	w.wantProxies("kube-system", kubeProxy, "")

	w.MustKubectl(w.t, "apply", "--server-side", "-k", "../../deploy/crds") // these were there before
	w.follow("Start grid-controller")
	w.wantProxies("gridproxy", gridproxy, both)
}

// comeBack: kube-proxy's rules are as they were before gridproxy came, and nothing runs that was not there.
func (w *migrationCluster) comeBack(before map[string]string) {
	w.follow("The way back")
	w.wantProxies("kube-system", kubeProxy, both)
	w.wantProxies("gridproxy", gridproxy, "")
	w.wantOpen("web", "closed")
	w.follow("Leave nothing behind")
	w.wantProxies("kube-system", kubeProxy, both)
	w.wantOpen("web", "closed")
	wait.Until(w.t, "the rules are as before", func() error {
		diff := cmp.Diff(before, w.allRules())
		return wait.Check(diff == "", "(-before +after):\n%s", diff)
	})
	if left := w.MustKubectl(w.t, "--namespace=gridproxy", "get", "daemonset,deployment,serviceaccount,clusterrole,clusterrolebinding", "--selector=app.kubernetes.io/part-of=gridproxy", "--output=name"); left != "" {
		w.t.Errorf("these are left:\n%s", left)
	}
	if crds := w.MustKubectl(w.t, "get", "crd", "--output=name"); !strings.Contains(crds, "deploymentgrids.superedge.io") {
		w.t.Errorf("the definitions went:\n%s", crds)
	}
}
