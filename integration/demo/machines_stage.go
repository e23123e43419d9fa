package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/machines"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
	"gridproxy/integration/manifests/chart"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type machinesStage struct {
	out   io.Writer
	dir   string
	began time.Time

	helm    chart.Helm
	images  []machines.Image
	cluster *machines.Cluster
}

// say prints a line with the seconds since the beginning.
func (s *machinesStage) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%6.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// build makes sure of all programs, which may take minutes the first time, and makes the image.
func (s *machinesStage) build(ctx context.Context) error {
	s.say("programs and images: what is missing is built, and kept for the next time")
	for _, ensure := range []func(context.Context, io.Writer) (apiserver.Tools, error){
		apiserver.Ensure, apiserver.EnsureNodeRuntime,
	} {
		if _, err := ensure(ctx, s.out); err != nil {
			return err
		}
	}
	var err error
	if s.helm, err = chart.New(ctx, s.out, s.dir); err != nil {
		return err
	}
	for _, build := range []func(context.Context, string) (machines.Image, error){machines.Gridproxy, machines.Curl} {
		image, err := build(ctx, s.dir)
		if err != nil {
			return err
		}
		s.images = append(s.images, image)
	}
	return nil
}

func (s *machinesStage) start(ctx context.Context) error {
	s.say("a control plane and four machines: namespaces, each with its containerd and kubelet")
	root, err := chart.Root(ctx)
	if err != nil {
		return err
	}
	s.cluster, err = machines.Start(ctx, machines.Options{
		Dir: s.dir, Images: s.images, Manifests: []string{filepath.Join(root, "deploy", "crds")},
	})
	return err
}

func (s *machinesStage) install(ctx context.Context) error {
	values := s.cluster.Values()
	s.say("helm template gridproxy deploy/charts/gridproxy --set-json '%s' | kubectl apply", strings.Join(values, "' --set-json '"))
	if err := s.cluster.Install(ctx, s.helm); err != nil {
		return err
	}
	for _, workload := range []string{"daemonset/gridproxy", "deployment/grid-controller"} {
		_, err := s.cluster.KubectlIn(ctx, nil, "rollout", "status", "--namespace="+chart.Namespace, "--timeout=2m", workload)
		if err != nil {
			return err
		}
	}
	s.say("gridproxy runs on every machine, grid-controller twice")
	return nil
}

// clients are Pods with a curl, one on each machine.
const clients = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: client, namespace: default}
spec:
  selector: {matchLabels: {app: client}}
  template:
    metadata: {labels: {app: client}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: client, image: "curl:lab"}]
`

// The children of the Grid, in its order of units.
var units = []string{"beijing", "guangzhou"}

func (s *machinesStage) apply(ctx context.Context) error {
	s.say("kubectl apply -f deploy/samples/stateless, and a Pod with a curl on each machine")
	root, err := chart.Root(ctx)
	if err != nil {
		return err
	}
	if _, err := s.cluster.KubectlIn(ctx, nil, "apply", "--filename="+filepath.Join(root, "deploy/samples/stateless")); err != nil {
		return err
	}
	if _, err := s.cluster.KubectlIn(ctx, strings.NewReader(clients), "apply", "--filename=-"); err != nil {
		return err
	}
	for _, unit := range units {
		deployment := "deployment/deploymentgrid-demo-" + unit
		for _, args := range [][]string{
			{"wait", "--for=create", "--timeout=1m", deployment}, {"rollout", "status", "--timeout=1m", deployment},
		} {
			if _, err := s.cluster.KubectlIn(ctx, nil, args...); err != nil {
				return err
			}
		}
	}
	_, err = s.cluster.KubectlIn(ctx, nil, "rollout", "status", "--timeout=1m", "daemonset/client")
	return err
}

func (s *machinesStage) show(ctx context.Context) error {
	const args = "get nodes,dg,sg,deploy,pods,svc -o wide"
	out, err := s.cluster.KubectlIn(ctx, nil, strings.Fields(args)...)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n$ kubectl %s\n%s", args, out)
	return nil
}

// machineRequests are from each machine.
const machineRequests = 20

// ask asks the Service from a Pod on each machine, all at the same time, on a connection for each
// request.
func (s *machinesStage) ask(ctx context.Context) error {
	vip, err := s.vip(ctx)
	if err != nil {
		return err
	}
	curl := []string{
		"curl", "--silent", "--show-error", "--max-time", "10", "--header", "Connection: close", fmt.Sprintf("http://%s/?[1-%d]", vip, machineRequests),
	}
	fmt.Fprintf(s.out, "\n$ kubectl exec client-... -- %s\n\nfrom the Pod on each machine: who was answered by whom\n\n", strings.Join(quoted(curl), " "))
	m, err := s.matrix(ctx)
	if err != nil {
		return err
	}
	pods, err := s.pods(ctx, "app=client")
	if err != nil {
		return err
	}
	if err := s.served(ctx, pods, vip); err != nil {
		return err
	}
	var asking sync.WaitGroup
	var mu sync.Mutex
	for _, client := range pods {
		asking.Go(func() {
			out, err := s.cluster.Exec(ctx, client.Namespace, client.Name, curl...)
			var answers []string
			for line := range strings.Lines(out) {
				if pod, ok := strings.CutPrefix(strings.TrimSpace(line), "pod name:"); ok {
					answers = append(answers, strings.TrimSpace(pod))
				}
			}
			if err == nil && len(answers) < machineRequests {
				err = fmt.Errorf("%d of %d answers name a Pod: %s", len(answers), machineRequests, out)
			}
			failed := slices.Repeat([]error{err}, max(0, machineRequests-len(answers)))
			mu.Lock()
			defer mu.Unlock()
			m.Add(client.Spec.NodeName, answers, failed)
		})
	}
	asking.Wait()
	m.Print(s.out)
	v := m.Verdict()
	fmt.Fprintf(s.out, "\n  %d requests: %d left their unit, %d failed.\n\n", v.Asked, v.Left, v.Failed)
	for _, client := range pods {
		if failed := m.Failed(client.Spec.NodeName); len(failed) > 0 {
			return fmt.Errorf("asking from %s: %w", client.Spec.NodeName, failed[0])
		}
	}
	if !v.Good() {
		return errLeft
	}
	return nil
}

// propagation is how long endpoints that are ready may take to reach every machine's rules.
const propagation = time.Minute

// served waits until the Service is answered on every machine: a Pod is ready a moment before the
// rules of all machines name it, and the Service is refused until then.
func (s *machinesStage) served(ctx context.Context, clients []corev1.Pod, vip string) error {
	ctx, cancel := context.WithTimeout(ctx, propagation)
	defer cancel()
	for _, client := range clients {
		err := wait.For(ctx, func(ctx context.Context) error {
			_, err := s.cluster.Exec(ctx, client.Namespace, client.Name,
				"curl", "--silent", "--show-error", "--max-time", "2", "http://"+vip+"/")
			return err
		})
		if err != nil {
			return fmt.Errorf("waiting until %s has the endpoints: %w", client.Spec.NodeName, err)
		}
	}
	return nil
}

func quoted(words []string) []string {
	all := slices.Clone(words)
	for i, w := range all {
		if strings.ContainsAny(w, " ?[") {
			all[i] = "'" + w + "'"
		}
	}
	return all
}

func (s *machinesStage) vip(ctx context.Context) (string, error) {
	service, err := s.cluster.Client.CoreV1().Services("default").Get(ctx, "servicegrid-demo-svc", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the Service: %w", err)
	}
	return service.Spec.ClusterIP, nil
}

func (s *machinesStage) pods(ctx context.Context, selector string) ([]corev1.Pod, error) {
	list, err := s.cluster.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods: %w", err)
	}
	return list.Items, nil
}

func (s *machinesStage) matrix(ctx context.Context) (*netns.Matrix, error) {
	unit := map[string]string{}
	var nodes, endpoints []netns.Member
	for _, spec := range machines.Manual() {
		unit[spec.Name] = spec.Labels["location"]
		nodes = append(nodes, netns.Member{Node: spec.Name, Unit: unit[spec.Name]})
	}
	pods, err := s.pods(ctx, "appGrid=echo")
	for _, p := range pods {
		endpoints = append(endpoints, netns.Member{
			Node: p.Spec.NodeName, Unit: unit[p.Spec.NodeName], Pod: p.Name, Label: p.Status.PodIP,
		})
	}
	return netns.NewMatrix(nodes, endpoints), err
}

// Close takes everything down.
func (s *machinesStage) Close() error {
	var err error
	if s.cluster != nil {
		err = s.cluster.Close()
	}
	if err = errors.Join(err, os.RemoveAll(s.dir)); err == nil && s.cluster != nil {
		s.say("everything is taken down")
	}
	return err
}

// Show plays the whole story, top to bottom.
func (s *machinesStage) Show(ctx context.Context, out io.Writer) (err error) {
	if missing := need.MissingCluster(); missing != "" {
		return errors.New(missing)
	}
	s.out, s.began = out, time.Now()
	if s.dir, err = os.MkdirTemp("", "gridproxy-cluster-"); err != nil {
		return fmt.Errorf("making a folder for the cluster: %w", err)
	}
	for _, step := range []func(context.Context) error{
		s.build, s.start, s.install, s.apply, s.show, s.ask,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
