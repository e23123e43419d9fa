package main

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"

	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSnapshotHeldBack: an API server that returns with empty storage changes no rule, independent
// of the order of its lists. The same holds at the start of a daemon if the kernel holds rules.
// When default/kubernetes exists again, the Snapshot counts. The API server is a fake, because a
// real one creates the Service again within seconds.
func TestSnapshotHeldBack(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	ns := newNamespace(t)
	api, address, closeAPI := serveIn(t, ns, "127.0.0.1:0")
	apiServer, web := clusterIP("kubernetes", "10.96.0.1", 443), clusterIP("web", "10.96.0.2", 80)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-3"}}
	put(t, api, apiServer, readyAt("kubernetes", "192.0.2.1"), web, readyAt("web", "10.0.0.1"), node)
	for i := range 50 {
		name := fmt.Sprintf("more-%d", i)
		put(t, api, clusterIP(name, fmt.Sprintf("10.96.1.%d", i+1), 80), readyAt(name, "10.0.0.1"))
	}
	args := []string{"--node-name=bj-3", "--kubeconfig=" + kubeconfigOf(t, address), "--verify-period=1s"}

	d := startIn(t, ns, args...)
	d.until(t, "the rules of web", func() bool { return strings.Contains(d.rules(t), "10.0.0.1:8080") })
	if n := d.metric(t, snapshotHeld, 10249); n != 0 {
		t.Errorf("at first: %s is %v", snapshotHeld, n)
	}
	before := d.rules(t)
	closeAPI()
	api, _, _ = serveIn(t, ns, address)
	put(t, api, node)
	d.until(t, "the hold", func() bool { return d.metric(t, snapshotHeld, 10249) == 1 })
	held := d.metric(t, verifyRuns, 10249)
	d.until(t, "more runs", func() bool { return d.metric(t, verifyRuns, 10249) >= held+3 })
	if after := d.rules(t); after != before {
		t.Errorf("rules without Services:\n%s\nbefore:\n%s", after, before)
	}
	if n := d.logged("does not list what every cluster has"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
	d.stop(t, syscall.SIGTERM)

	d = startIn(t, ns, args...)
	d.until(t, "the hold of a daemon that starts", func() bool { return d.metric(t, snapshotHeld, 10249) == 1 })
	if after := d.rules(t); after != before || d.get("/readyz", 10256).code == 200 {
		t.Errorf("a daemon that starts is ready, or changed the rules:\n%s\nbefore:\n%s", after, before)
	}
	put(t, api, readyAt("kubernetes", "192.0.2.1"), apiServer)
	d.until(t, "the rules of web to go", func() bool { return !strings.Contains(d.rules(t), "10.0.0.1:8080") })
	d.ready(t)
	if n := d.metric(t, snapshotHeld, 10249); n != 0 {
		t.Errorf("when the Service is back: %s is %v", snapshotHeld, n)
	}
	d.stop(t, syscall.SIGTERM)

	remove(t, api, apiServer)
	put(t, api, web)
	trial := startIn(t, ns, append(args, "--service-proxy-name=trial")...)
	trial.until(t, "a trial to be ready without default/kubernetes", func() bool { return trial.get("/readyz", 10256).code == 200 })
	if n := trial.metric(t, snapshotHeld, 10249); n != 0 {
		t.Errorf("a trial: %s is %v", snapshotHeld, n)
	}
}

// TestHoldBeforeAFamilyOpens: rules of a family that cannot be opened yet count as our rules.
// Because of a native rule table nat cannot be read when the daemon starts, and IPv6 is off.
func TestHoldBeforeAFamilyOpens(t *testing.T) {
	need.IPTables(t)
	ns := newNamespace(t)
	setSysctl(t, ns, "net/ipv6/conf/all/disable_ipv6", "1")
	api, address, _ := serveIn(t, ns, "127.0.0.1:0")
	apiServer, web := clusterIP("kubernetes", "10.96.0.1", 443), clusterIP("web", "10.96.0.2", 80)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-3"}}
	put(t, api, apiServer, readyAt("kubernetes", "192.0.2.1"), web, readyAt("web", "10.0.0.1"), node)
	args := []string{"--node-name=bj-3", "--kubeconfig=" + kubeconfigOf(t, address), "--verify-period=1s"}
	d := startIn(t, ns, args...)
	d.until(t, "the rules of web", func() bool { return strings.Contains(d.rules(t), "10.0.0.1:8080") })
	before := d.rules(t)
	d.stop(t, syscall.SIGTERM)

	remove(t, api, apiServer, web, readyAt("kubernetes", "192.0.2.1"), readyAt("web", "10.0.0.1"))
	nft := func(args ...string) { within(t, ns, func() error { return exec.Command("nft", args...).Run() }) }
	nft("add", "rule", "ip", "nat", "POSTROUTING", "oifname", "eth0", "masquerade")
	d = startIn(t, ns, args...)
	d.until(t, "IPv4 not to open", func() bool { return d.logged("an address family cannot be written") > 0 })
	nft("flush", "chain", "ip", "nat", "POSTROUTING")
	d.until(t, "the hold", func() bool { return d.metric(t, snapshotHeld, 10249) == 1 })
	if after := d.rules(t); !strings.Contains(after, "10.0.0.1:8080") {
		t.Errorf("the rules of web are gone:\n%s\nbefore:\n%s", after, before)
	}
}

const snapshotHeld = "gridproxy_snapshot_held_back"

func put(t *testing.T, api *need.FakeAPI, objects ...need.FakeObject) {
	t.Helper()
	if err := api.Put(objects...); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, api *need.FakeAPI, objects ...need.FakeObject) {
	t.Helper()
	for _, o := range objects {
		if err := api.Remove(o); err != nil {
			t.Fatal(err)
		}
	}
}

// kubeconfigOf is a file that names an API server without credentials.
func kubeconfigOf(t *testing.T, address string) string {
	t.Helper()
	return tempFile(t, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, users: [{name: u}],
clusters: [{name: c, cluster: {server: "http://%s"}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, address))
}

// serveIn is an API server without objects, in a namespace.
func serveIn(t *testing.T, ns netns.NsHandle, address string) (api *need.FakeAPI, at string, closeAPI func()) {
	t.Helper()
	var listener net.Listener
	within(t, ns, func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	api = need.ServeFakeAPI(listener)
	end := sync.OnceValue(api.Close)
	t.Cleanup(func() { _ = end() })
	return api, listener.Addr().String(), func() {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
}

func clusterIP(name, address string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: address, ClusterIPs: []string{address},
			Ports: []corev1.ServicePort{{Port: port, Protocol: corev1.ProtocolTCP}},
		},
	}
}

// readyAt is an EndpointSlice with one endpoint.
func readyAt(service, address string) *discoveryv1.EndpointSlice {
	name, protocol, port := "", corev1.ProtocolTCP, int32(8080)
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Protocol: &protocol, Port: &port}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}
