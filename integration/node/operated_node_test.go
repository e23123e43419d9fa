package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type operatedNode struct {
	labCluster
	binary  string
	program string        // runs binary, and sees a kernel that refuses what refusal says
	refusal *need.Refusal // nothing, before a test says otherwise
	daemon  *netns.Process
}

func newOperatedNode(t *testing.T) *operatedNode {
	t.Helper()
	w := &operatedNode{labCluster: newLabCluster(t)}
	var err error
	w.binary = program.ForTest(t, program.Gridproxy)
	w.refusal, err = need.NewRefusal(t.TempDir())
	must(w.t, err)
	w.program, err = w.refusal.Program(w.binary)
	must(w.t, err)
	return w
}

// in is the node with the test that a failure ends.
func (w *operatedNode) in(t *testing.T) *operatedNode {
	step := *w
	step.t = t
	return &step
}

// addService makes a closed Service with one ready endpoint on each of the nodes.
func (w *operatedNode) addService(name, address string, nodes ...string) {
	w.t.Helper()
	_, err := w.api.CoreV1().Services("default").Create(w.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"topologyKeys": `["location"]`}},
		Spec:       corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(w.t, err)
	port := int32(8080)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{discoveryv1.LabelServiceName: name},
			Annotations: map[string]string{
				corev1.EndpointsLastChangeTriggerTime: time.Now().Format(time.RFC3339Nano),
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: &port}},
		Endpoints:   w.endpoints(nodes...),
	}
	_, err = w.api.DiscoveryV1().EndpointSlices("default").Create(w.ctx, slice, metav1.CreateOptions{})
	must(w.t, err)
}

func (w *operatedNode) endpoints(nodes ...string) []discoveryv1.Endpoint {
	endpoints := []discoveryv1.Endpoint{}
	for i, node := range nodes {
		endpoints = append(endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.9.%d", i+1)}, NodeName: &node})
	}
	return endpoints
}

// patch changes what it names of an object, with a merge patch.
func (w *operatedNode) patch(kind, name string, patch any) {
	w.t.Helper()
	text, err := json.Marshal(patch)
	must(w.t, err)
	switch kind {
	case "service":
		_, err = w.api.CoreV1().Services("default").Patch(w.ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	case "slice":
		_, err = w.api.DiscoveryV1().EndpointSlices("default").Patch(w.ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	case "node":
		_, err = w.api.CoreV1().Nodes().Patch(w.ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	}
	must(w.t, err)
}

func (w *operatedNode) annotate(service, keys string) {
	w.t.Helper()
	w.patch("service", service, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"topologyKeys": keys}}})
}

func (w *operatedNode) serve(slice string, nodes ...string) {
	w.t.Helper()
	w.patch("slice", slice, map[string]any{"endpoints": w.endpoints(nodes...)})
}

func (w *operatedNode) start(flags ...string) {
	w.t.Helper()
	args := append([]string{"run", "--node-name", here, "--kubeconfig", w.Kubeconfig(), "--conntrack-max-per-core", "0", "--iptables-variant", "nft", "--status-socket=", "-v", "4"}, flags...)
	var err error
	w.daemon, err = w.node.Start(w.program, args...)
	must(w.t, err)
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("the daemon said:\n%s", w.daemon.Log())
		}
	})
	wait.Until(w.t, "/readyz says 200", func() error { return w.wantCode("/readyz", 200) })
}

func (w *operatedNode) wantCode(path string, code int) error {
	page, err := (w.node).Get(w.ctx, healthz, path)
	return errors.Join(err, wait.Check(page.Code == code, "%s says %d: %s", path, page.Code, page.Text))
}

// events are the Events of a reason, as "object component@host: message".
func (w *operatedNode) events(reason string) []string {
	w.t.Helper()
	list, err := w.api.CoreV1().Events("default").List(w.ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
	must(w.t, err)
	var all []string
	for _, e := range list.Items {
		all = append(all, fmt.Sprintf("%s/%s %s@%s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Source.Component, e.Source.Host, e.Message))
	}
	return all
}

func (w *operatedNode) wantEvent(reason string, parts ...string) error {
	all := w.events(reason)
	for _, e := range all {
		missing := ""
		for _, p := range parts {
			if !strings.Contains(e, p) {
				missing = p
			}
		}
		if missing == "" {
			return nil
		}
	}
	return fmt.Errorf("no Event %s with %q among %q", reason, parts, all)
}

func (w *operatedNode) rules() string {
	w.t.Helper()
	save, err := w.node.Save(w.ctx, "iptables-nft-save", "-t", "nat")
	must(w.t, err)
	return save
}

func (w *operatedNode) wantRule(text string, want bool) error {
	rules := w.rules()
	return wait.Check(strings.Contains(rules, text) == want, "want %q in the rules: %v; they are\n%s", text, want, rules)
}
