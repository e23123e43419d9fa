package main

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/status"
	"gridproxy/topology"

	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listenIn listens in a namespace until it is closed. The kernel accepts connections.
func listenIn(t *testing.T, ns netns.NsHandle, address string) (l net.Listener) {
	t.Helper()
	within(t, ns, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// throughProxy are default/kubernetes with an API server and with a node-local API proxy.
func throughProxy(t *testing.T, server, proxy string) (*corev1.Service, *discoveryv1.EndpointSlice) {
	t.Helper()
	host, port, err := net.SplitHostPort(proxy)
	if err != nil {
		t.Fatal(err)
	}
	svc, slice := clusterIP("kubernetes", "10.96.0.1", 443), readyAt("kubernetes", server)
	svc.Spec.Ports[0].Name, slice.Ports[0].Name = "https", new("https")
	slice.Annotations = map[string]string{topology.AnnotationLocalEndpoint: host, topology.AnnotationLocalPort: port}
	return svc, slice
}

// TestAPIProxy: default/kubernetes leads to the node-local API proxy while that answers, and to the
// API servers while it does not, also without any API server after a reboot. A machine
// after a reboot is another network namespace.
func TestAPIProxy(t *testing.T) {
	t.Parallel()
	machine := newNamespace(t)
	proxy := listenIn(t, machine, "127.0.0.1:0")
	at := proxy.Addr().String()
	api, address, closeAPI := serveIn(t, machine, "127.0.0.1:0")
	svc, slice := throughProxy(t, "192.0.2.1", at)
	put(t, api, svc, slice, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-3"}})
	n := newSavingNode(t, address)
	leadsTo := func(d *process, destination string) func() bool {
		return func() bool {
			rules := d.rules(t)
			return strings.Contains(rules, "--to-destination "+destination) && strings.Count(rules, "--to-destination") == 1
		}
	}
	up := func(d *process) float64 {
		return d.metric(t, regexp.QuoteMeta(fmt.Sprintf("gridproxy_api_proxy_up{address=%q}", at)), 10249)
	}
	wantStatus := func(d *process, answers bool) {
		d.untilStatus(t, n.socket, fmt.Sprintf("an API proxy that answers: %t", answers), func(s status.Status, _ int, _ string) bool {
			return slices.Equal(s.Knowledge.APIProxies, []status.APIProxy{{Address: at, Answers: answers}})
		})
	}

	d := n.start(machine)
	d.until(t, "the API proxy", leadsTo(d, at))
	if got := up(d); got != 1 || d.logged("the node-local API proxy answers") != 1 || d.logged("the node-local API proxy does not") != 0 {
		t.Errorf("the metric is %v, want 1, and one line in the log", got)
	}
	if err := proxy.Close(); err != nil {
		t.Fatal(err)
	}
	d.until(t, "the API servers in the place of a proxy that is down", leadsTo(d, "192.0.2.1:8080"))
	if got := up(d); got != 0 || d.logged("the node-local API proxy does not") != 1 {
		t.Errorf("the metric is %v, want 0, and one line in the log", got)
	}
	d.until(t, "an Event", func() bool { return api.Events() > 0 })
	wantStatus(d, false)
	wantNoDifference(t, machine, n.flags)
	listenIn(t, machine, at)
	d.until(t, "the proxy that is up again", leadsTo(d, at))
	wantStatus(d, true)
	wantNoDifference(t, machine, n.flags)
	d.until(t, "the state to be saved", func() bool { return d.metric(t, stateWrites, 10249) == 1 })
	d.stop(t, syscall.SIGTERM)
	closeAPI()

	rebooted := newNamespace(t)
	d = n.start(rebooted)
	d.until(t, "the API servers after a reboot", leadsTo(d, "192.0.2.1:8080"))
	listenIn(t, rebooted, at)
	d.until(t, "the API proxy after a reboot", leadsTo(d, at))
	if got := d.metric(t, stateFromDisk, 10249); got != 1 {
		t.Errorf("%s is %v", stateFromDisk, got)
	}
}

// wantNoDifference compares the rules of a machine with those that a new daemon would write.
func wantNoDifference(t *testing.T, machine netns.NsHandle, flags []string) {
	t.Helper()
	if code, text := diff(t, machine, flags...); code != command.OK {
		t.Errorf("gridproxy diff: code %d\n%s", code, text)
	}
}

// TestAPIProxyAtRest: where no API proxy is named there is no metric of one.
func TestAPIProxyAtRest(t *testing.T) {
	machine := newNamespace(t)
	api, address, _ := serveIn(t, machine, "127.0.0.1:0")
	put(t, api, clusterIP("kubernetes", "10.96.0.1", 443), readyAt("kubernetes", "192.0.2.1"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-3"}})
	d := newSavingNode(t, address).start(machine)
	d.until(t, "the API servers", func() bool { return strings.Contains(d.rules(t), "192.0.2.1:8080") })
	if body := d.get("/metrics", 10249).body; strings.Contains(body, "api_proxy_up{") || !strings.Contains(body, stateWrites) {
		t.Error("a metric of an API proxy that is not named")
	}
}
