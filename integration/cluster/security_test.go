package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/wait"
	"gridproxy/integration/manifests/chart"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A machine of each variant of iptables.
const (
	nft    = "nft-1"
	legacy = "legacy-1"
)

const daemon, controller = "gridproxy", "grid-controller"

// TestProcesses installs the chart and looks at its processes, then takes capabilities away.
func TestProcesses(t *testing.T) {
	w := newSecurityCluster(t)
	w.answers()
	w.t.Logf("a Service answers on both variants %s after the chart was applied", time.Since(w.begin).Round(100*time.Millisecond))
	for _, machine := range []string{nft, legacy} {
		w.process(machine, daemon, map[string]string{
			"CapEff": "0000000000003000", "CapBnd": "0000000000003000", "CapAmb": "0000000000000000", // NET_ADMIN and NET_RAW
			"NoNewPrivs": "1", "Seccomp": "2",
		})
	}
	w.process(w.nodeOf(controller), controller, map[string]string{
		"CapEff": "0000000000000000", "CapBnd": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2", "Uid": "65534",
	})

	w.leaves("NET_ADMIN")
	w.ready(nft, true)
	w.refused(legacy)
	w.leaves("NET_RAW")
	w.refused(nft)
	w.refused(legacy)
	w.leaves("NET_ADMIN", "NET_RAW")
	w.answers()
}

type securityCluster struct {
	*machines.Cluster
	t       *testing.T
	begin   time.Time // of the installation
	service netip.AddrPort
}

func newSecurityCluster(t *testing.T) *securityCluster {
	t.Helper()
	w := &securityCluster{t: t}
	w.Cluster = machines.ForTest(t, machines.Options{
		Machines:  []machines.Spec{{Name: nft, Variant: apiserver.NFT}, {Name: legacy, Variant: apiserver.Legacy}},
		Manifests: []string{"../../deploy/crds"}, Images: []machines.Image{machines.ImageForTest(t, machines.Gridproxy)},
	})
	helm, err := chart.New(t.Context(), os.Stderr, t.TempDir())
	must(t, err)
	w.Apply(t, echo)
	w.begin = time.Now()
	must(t, w.Install(t.Context(), helm, "crds.install=false"))
	ip := w.MustKubectl(t, "get", "service", "echo", "-o", "jsonpath={.spec.clusterIP}")
	w.service = netip.AddrPortFrom(netip.MustParseAddr(ip), 80)
	return w
}

const echo = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo}
spec:
  replicas: 2
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers: [{name: echo, image: "superedge/echoserver:2.2"}]
---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  selector: {app: echo}
  ports: [{port: 80, targetPort: 8080}]
`

// answers: the daemons are ready, and from each machine the Service is answered.
func (w *securityCluster) answers() {
	w.t.Helper()
	for _, name := range []string{nft, legacy} {
		w.ready(name, true)
		wait.Until(w.t, "the Service answers on "+name, func() error {
			ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
			defer cancel()
			page, err := w.Machine(name).Namespace.Get(ctx, w.service, "/")
			return errors.Join(err, wait.Check(strings.Contains(string(page.Text), "node name:"), "it says %s", page.Text))
		})
	}
}

func (w *securityCluster) pod(machine string) (*corev1.Pod, error) {
	list, err := w.Client.CoreV1().Pods(chart.Namespace).List(w.t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=" + daemon, FieldSelector: "spec.nodeName=" + machine,
	})
	if err != nil {
		return nil, err
	}
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			return &p, nil
		}
	}
	return nil, fmt.Errorf("there is none on %s", machine)
}

func (w *securityCluster) ready(machine string, want bool) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("the daemon of %s is ready: %t", machine, want), func() error {
		p, err := w.pod(machine)
		if err != nil {
			return err
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodReady && (c.Status == corev1.ConditionTrue) == want {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %v", p.Status.Phase, p.Status.Conditions)
	})
}

// refused: the daemon runs, says that it is not permitted, and is not ready.
func (w *securityCluster) refused(machine string) {
	w.t.Helper()
	wait.Until(w.t, "the daemon of "+machine+" says that it lacks a capability", func() error {
		p, err := w.pod(machine)
		if err != nil {
			return err
		}
		log, err := w.Kubectl("logs", "--namespace="+chart.Namespace, p.Name)
		return errors.Join(err, wait.Check(strings.Contains(log, "Permission denied") || strings.Contains(log, "operation not permitted"), "it says %s", log))
	})
	w.ready(machine, false)
}

// leaves replaces the daemons by some that have these capabilities alone.
func (w *securityCluster) leaves(capabilities ...string) {
	w.t.Helper()
	quoted := fmt.Sprintf("%q", capabilities)
	patch := fmt.Sprintf(`{"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}, "template": {"spec": {"containers": [
		{"name": "gridproxy", "securityContext": {"capabilities": {"drop": ["ALL"], "add": %s}}}]}}}}`, strings.ReplaceAll(quoted, `" "`, `", "`))
	w.MustKubectl(w.t, "patch", "daemonset", daemon, "--namespace="+chart.Namespace, "--patch="+patch)
	wait.Until(w.t, "the change is seen", func() error {
		d, err := w.Client.AppsV1().DaemonSets(chart.Namespace).Get(w.t.Context(), daemon, metav1.GetOptions{})
		return errors.Join(err, wait.Check(d.Status.ObservedGeneration == d.Generation, "generation %d of %d", d.Status.ObservedGeneration, d.Generation))
	})
	w.MustKubectl(w.t, "delete", "pods", "--namespace="+chart.Namespace, "--selector=app.kubernetes.io/name="+daemon)
}

// nodeOf is where a running Pod of a workload is.
func (w *securityCluster) nodeOf(name string) string {
	w.t.Helper()
	var node string
	wait.Until(w.t, name+" runs", func() error {
		list, err := w.Client.CoreV1().Pods(chart.Namespace).List(w.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + name})
		if err != nil {
			return err
		}
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning {
				node = p.Spec.NodeName
				return nil
			}
		}
		return fmt.Errorf("none of %d", len(list.Items))
	})
	return node
}

// process looks at a program on a machine: what the kernel says of it, and that its root file system is read-only.
func (w *securityCluster) process(machine, program string, want map[string]string) {
	w.t.Helper()
	m := w.Machine(machine)
	pid := ""
	wait.Until(w.t, program+" runs on "+machine, func() error {
		out, err := m.Run(w.t.Context(), nil, "pgrep", "--exact", program)
		if err != nil {
			pods, _ := w.Kubectl("get", "pods", "--namespace="+chart.Namespace, "--output=wide") // for the message
			return fmt.Errorf("%w\n%s", err, pods)
		}
		pid = strings.Fields(string(out))[0]
		return nil
	})
	status, err := m.Run(w.t.Context(), nil, "cat", "/proc/"+pid+"/status")
	must(w.t, err)
	seen := map[string]string{}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		if f := strings.Fields(value); len(f) > 0 {
			seen[key] = f[0]
		}
	}
	for key, value := range want {
		if seen[key] != value {
			w.t.Errorf("%s of %s on %s is %q, want %q", key, program, machine, seen[key], value)
		}
	}
	mounts, err := m.Run(w.t.Context(), nil, "cat", "/proc/"+pid+"/mountinfo")
	must(w.t, err)
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); f[4] == "/" && !slices.Contains(strings.Split(f[5], ","), "ro") {
			w.t.Errorf("%s on %s can write to its root file system: %s", program, machine, line)
		}
	}
}
