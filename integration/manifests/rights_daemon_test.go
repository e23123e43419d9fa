package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
)

// TestDaemonRights runs many daemons at once, each on a Node of its own in a network namespace of its own: one has all
// rights of deploy/gridproxy.yaml, and each of the others lacks one.
func TestDaemonRights(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	begin := time.Now()
	all := read(t, "gridproxy.yaml")
	binary := program.ForTest(t, program.Gridproxy)
	w := newSite(t, nodes.ForTest(t, nodes.Options{}))
	whole := w.newDaemon(t, "all", all)
	lacking := make([]*daemon, len(all))
	for i := range all {
		lacking[i] = w.newDaemon(t, fmt.Sprint("lacks-", i), without(all, i))
	}
	daemons := append(slices.Clone(lacking), whole)
	var starting sync.WaitGroup
	for _, d := range daemons {
		starting.Go(func() { d.start(binary) })
	}
	starting.Wait()

	w.serve(t, daemons, 1)
	wait.Until(t, "the daemon with all rights is ready", func() error { return whole.namespace.Readyz(t.Context()) })
	wait.Until(t, "its rules lead to the endpoint", func() error { return whole.leadsTo(t.Context(), 1) })
	w.serve(t, daemons, 2)
	wait.Until(t, "its rules follow", func() error { return whole.leadsTo(t.Context(), 2) })
	w.annotate(t, "[broken")
	wait.Until(t, "an Event says that the annotation is wrong", func() error { return w.told(t.Context(), whole, 1) })
	w.annotate(t, keys)
	w.move(t, whole, "elsewhere")
	wait.Until(t, "a Node that has left its unit has no endpoint", func() error { return whole.leadsTo(t.Context()) })
	w.move(t, whole, "here")
	wait.Until(t, "and has it again", func() error { return whole.leadsTo(t.Context(), 2) })
	w.annotate(t, "[broken")
	wait.Until(t, "the Event counts", func() error { return w.told(t.Context(), whole, 2) })

	if no := refused(whole.count); len(no) > 0 {
		t.Errorf("the rights of the manifest do not suffice: %v", no)
	}
	unneeded := idle(t, all, whole.count)
	for i, r := range all {
		if unneeded[r.String()] {
			continue // nothing would be refused
		}
		t.Run("without "+r.String(), func(t *testing.T) { lacking[i].fails(t, w, r) })
	}
	t.Logf("%d daemons, each without another right: %s", len(all), time.Since(begin).Round(time.Second))
}

// fails: something is refused, and it is what the right is for; the daemon goes on without ending. What is needed to
// decide is fail-safe: without it there are no rules at all.
func (d *daemon) fails(t *testing.T, w *site, lacks Right) {
	asked, wrong := 0, true
	wait.Until(t, "it is refused", func() error {
		if asked++; lacks.Resource == "events" && asked%100 == 0 {
			// A busy daemon may see the annotation when it is right again, and then has nothing to tell a second time.
			wrong = !wrong
			w.annotate(t, map[bool]string{true: "[broken", false: keys}[wrong])
		}
		return d.wantRefused(lacks)
	})
	for _, r := range refused(d.count) {
		if r.Resource != lacks.Object() {
			t.Errorf("refused too: %s", r)
		}
	}
	switch lacks.Resource {
	case "events":
		wait.Until(t, "without Events it does its work", func() error { return d.leadsTo(t.Context(), 2) })
		if err := w.told(t.Context(), d, 2); err == nil {
			t.Error("its Events are all there")
		}
	default:
		if lacks.Verb == "watch" {
			break // it lists again and again: late, not wrong
		}
		if err := d.namespace.Readyz(t.Context()); err == nil {
			t.Error("it says that it is ready")
		}
		if err := d.leadsTo(t.Context(), 2); err == nil {
			t.Error("its rules are right all the same")
		}
	}
	select {
	case <-d.process.Done():
		t.Errorf("it ended with code %d", d.process.ExitCode())
	default:
	}
}

// wantRefused returns an error unless a request that needs a right was refused.
func (d *daemon) wantRefused(lacks Right) error {
	all := refused(d.count)
	is := slices.ContainsFunc(all, func(r nodes.Request) bool { return r.Resource == lacks.Object() && r.Verb == lacks.Verb })
	return wait.Check(is, "refused are only %v", all)
}

// site is a Service in a control plane without machines. Its methods take the test that they fail: a subtest may not
// end its parent.
type site struct{ *nodes.Cluster }

// keys are the Service's. All Nodes are in one site, and each is in a unit of its own by its name: a mistake in them is
// told by one Node of each unit.
const keys = `["site", "name"]`

func newSite(t *testing.T, c *nodes.Cluster) *site {
	t.Helper()
	w := &site{c}
	_, err := c.Client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"topologyKeys": keys}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func endpointOf(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, 9, byte(n)}), 8080)
}

// serve makes the Service have its n-th endpoint alone, on the first Node.
func (w *site) serve(t *testing.T, daemons []*daemon, n int) {
	t.Helper()
	yes, port, name, protocol := true, int32(8080), "http", corev1.ProtocolTCP
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{endpointOf(n).Addr().String()}, NodeName: &daemons[0].node, Conditions: discoveryv1.EndpointConditions{Ready: &yes},
		}},
	}
	slices := w.Client.DiscoveryV1().EndpointSlices("default")
	var err error
	if n == 1 {
		_, err = slices.Create(t.Context(), slice, metav1.CreateOptions{})
	} else {
		_, err = slices.Update(t.Context(), slice, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *site) annotate(t *testing.T, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"topologyKeys": value}}})
	if err == nil {
		_, err = w.Client.CoreV1().Services("default").Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *site) move(t *testing.T, d *daemon, unit string) {
	t.Helper()
	w.SetLabels(t, d.node, map[string]string{"site": unit})
}

// told: the daemon's Event about the Service has been counted so often.
func (w *site) told(ctx context.Context, d *daemon, times int32) error {
	list, err := w.Client.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Source.Host == d.node && e.InvolvedObject.Name == "web" && e.Count >= times {
			return nil
		}
	}
	return fmt.Errorf("there is none among %d", len(list.Items))
}

type daemon struct {
	t         *testing.T
	node      string
	namespace *netns.Namespace
	count     *nodes.Count
	config    string // kubeconfig
	process   *netns.Process
}

func (w *site) newDaemon(t *testing.T, name string, rights []Right) *daemon {
	t.Helper()
	config, err := w.Counted(newAccount(t, w.Cluster, "daemon-"+name, rights), nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.newDaemonAs(t, name, config)
}

// newDaemonAs is newDaemon, for an account that exists.
func (w *site) newDaemonAs(t *testing.T, name string, config *rest.Config) *daemon {
	t.Helper()
	d := &daemon{t: t, node: name, count: &nodes.Count{}}
	w.AddNode(t, name, map[string]string{"site": "here", "name": name})
	if err := d.count.Wrap(config); err != nil {
		t.Fatal(err)
	}
	var err error
	if d.namespace, err = netns.NewNamespace(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.namespace.Close(); err != nil {
			t.Error(err)
		}
	})
	var listener net.Listener
	err = d.namespace.Do(func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	relay, err := w.RelayAt(config, listener)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(relay.Close)
	through := relay.Config()
	if len(through.CertData) == 0 { // the relay wants a certificate, and sends the token of the account
		admin := w.Admin()
		through.CertData, through.KeyData = admin.CertData, admin.KeyData
	}
	d.config = apiserver.KubeconfigForTest(t, through)
	return d
}

func (d *daemon) start(binary string, flags ...string) {
	var err error
	d.process, err = d.namespace.Start(binary, append([]string{"run", "--node-name", d.node, "--kubeconfig", d.config,
		"--conntrack-max-per-core", "0", "--iptables-variant", "nft", "--status-socket="}, flags...)...)
	if err != nil {
		d.t.Error(err)
		return
	}
	d.t.Cleanup(func() {
		if d.t.Failed() {
			d.t.Logf("%s: %s", d.node, d.process.Log())
		}
	})
}

// leadsTo: these endpoints, and no others, are what the Service's rules in the kernel lead to.
func (d *daemon) leadsTo(ctx context.Context, want ...int) error {
	save, err := d.namespace.Run(ctx, nil, "iptables-nft-save", "-t", "nat")
	if err != nil {
		return err
	}
	got, err := netns.Endpoints(netns.RulesOf(string(save), "default/web:http"))
	if err != nil {
		return err
	}
	var addrs []netip.AddrPort
	for _, n := range want {
		addrs = append(addrs, endpointOf(n))
	}
	return wait.Check(slices.Equal(got, addrs) && strings.Contains(string(save), "KUBE-SERVICES"), "the rules lead to %v, want %v", got, addrs)
}
