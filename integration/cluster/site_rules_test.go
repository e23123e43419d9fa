package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// right waits until all is right in a site: its Nodes and Pods are ready, and on each machine the
// kernel leads every Service to the endpoints that the API server has, and to no others.
func (w *siteCluster) right(ctx context.Context, s *remoteSite) error {
	return wait.Usual.For(ctx, func(ctx context.Context) error {
		if err := w.settled(ctx, s); err != nil {
			return err
		}
		want, err := w.endpoints(ctx, s)
		if err != nil {
			return err
		}
		for _, machine := range s.machines() {
			out, err := w.Machine(machine).Run(ctx, nil, "iptables-save", "-t", "nat")
			if err != nil {
				return err
			}
			if got := destinations(string(out)); !slices.Equal(got, want) {
				return fmt.Errorf("the kernel of %s leads to\n%s\nand the API server has\n%s",
					machine, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
		return nil
	})
}

// settled fails unless a site's Nodes, and as many Pods as there should be, are ready.
func (w *siteCluster) settled(ctx context.Context, s *remoteSite) error {
	for _, machine := range s.machines() {
		node, err := w.Client.CoreV1().Nodes().Get(ctx, machine, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			return fmt.Errorf("%s is not ready", machine)
		}
	}
	pods, err := w.Client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	of := map[string]int{}
	moved, err := w.Client.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, s.service("moved"), metav1.GetOptions{})
	if err != nil {
		return err
	}
	to := moved.Spec.Template.Spec.NodeSelector["kubernetes.io/hostname"]
	for _, p := range pods.Items {
		if p.Spec.NodeName != "" && !slices.Contains(s.machines(), p.Spec.NodeName) {
			continue
		}
		app := p.Labels["app"]
		if app != "web" && !strings.HasSuffix(app, "-"+s.unit) {
			continue
		}
		if p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			return fmt.Errorf("pod %s is not ready, or terminating", p.Name)
		}
		if app == moved.Name && p.Spec.NodeName != to {
			return fmt.Errorf("pod %s is on %s, and belongs on %s", p.Name, p.Spec.NodeName, to)
		}
		of[app]++
	}
	scaled, err := w.Client.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, s.service("scaled"), metav1.GetOptions{})
	if err != nil {
		return err
	}
	want := map[string]int{
		"web": 2, s.service("steady"): 1, s.service("evicted"): 1, s.service("moved"): 1, s.service("scaled"): int(*scaled.Spec.Replicas),
	}
	for app, n := range want {
		if of[app] != n {
			return fmt.Errorf("%d Pods of %s, want %d", of[app], app, n)
		}
	}
	return nil
}

// endpoints are the lines "SERVICE:PORT ADDRESS:PORT" for the ready IPv4 endpoints of namespace
// default that a site may use: gridproxy those of its unit, as all Services are closed, and
// kube-proxy all of them.
func (w *siteCluster) endpoints(ctx context.Context, s *remoteSite) ([]string, error) {
	list, err := w.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []string
	for _, slice := range list.Items {
		service := slice.Labels[discoveryv1.LabelServiceName]
		if service == "kubernetes" || slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, e := range slice.Endpoints {
			here := e.NodeName != nil && slices.Contains(s.machines(), *e.NodeName)
			if s.proxy == ours && !here || e.Conditions.Ready == nil || !*e.Conditions.Ready {
				continue
			}
			for _, p := range slice.Ports {
				all = append(all, fmt.Sprintf("%s:%s %s:%d", service, *p.Name, e.Addresses[0], *p.Port))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// destinations are the same lines, from what iptables-save prints.
func destinations(nat string) []string {
	var all []string
	for line := range strings.Lines(nat) {
		_, comment, found := strings.Cut(line, "default/")
		_, to, leads := strings.Cut(line, "--to-destination ")
		service, _, _ := strings.Cut(comment, `"`)
		if !strings.HasPrefix(line, "-A KUBE-SEP-") || !found || !leads || strings.HasPrefix(service, "kubernetes:") {
			continue
		}
		all = append(all, service+" "+strings.Fields(to)[0])
	}
	slices.Sort(all)
	return slices.Compact(all)
}
