// This file is compiled into kube-proxy's package healthcheck while its unit tests run on
// gridproxy's code: it replaces the servers of health-check node ports, /healthz and /livez.

package healthcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridproxy/cmd/gridproxy/health"
	"gridproxy/rules"
	gridhealthcheck "gridproxy/rules/healthcheck"
	"gridproxy/rules/host"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/proxy/metrics"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
)

// gridproxyServer is what a server knows beside kube-proxy's fields. It is a field of server.
type gridproxyServer struct {
	config    rules.Config
	ports     map[types.NamespacedName]uint16
	endpoints map[types.NamespacedName]int
	ours      *gridhealthcheck.Server
}

func newServiceHealthServer(nodeName string, recorder events.EventRecorder, l listener, factory httpServerFactory, nodePortAddresses *proxyutil.NodePortAddresses, healthzServer proxyHealthChecker, family v1.IPFamily) ServiceHealthServer {
	s := &server{
		nodeName: nodeName, recorder: recorder, listener: l, httpFactory: factory, healthzServer: healthzServer,
		services: map[types.NamespacedName]*hcInstance{}, network: "tcp4",
	}
	s.gridproxy.config.LocalhostNodePorts = true
	for text := range strings.FieldsSeq(strings.Trim(nodePortAddresses.String(), "[]")) {
		s.gridproxy.config.NodePortAddresses.Prefixes = append(s.gridproxy.config.NodePortAddresses.Prefixes, netip.MustParsePrefix(text))
	}
	s.gridproxy.ours = gridhealthcheck.New(func(rules.Family) bool { return healthzServer.Health().Healthy })
	return s
}

// SyncServices opens and closes real ports, and shows the test what is open.
func (hcs *server) SyncServices(ports map[types.NamespacedName]uint16) error {
	g, endpoints := &hcs.gridproxy, map[types.NamespacedName]int{}
	for name, port := range ports {
		if g.ports[name] == port {
			endpoints[name] = g.endpoints[name]
		}
	}
	g.ports, g.endpoints = maps.Clone(ports), endpoints
	return hcs.gridproxySync()
}

// SyncEndpoints changes the answers.
func (hcs *server) SyncEndpoints(endpoints map[types.NamespacedName]int) error {
	hcs.gridproxy.endpoints = maps.Clone(endpoints)
	return hcs.gridproxySync()
}

func (hcs *server) gridproxySync() error {
	ruleset, err := hcs.gridproxyRuleset()
	if err != nil {
		return err
	}
	for _, failed := range hcs.gridproxy.ours.Sync(ruleset, rules.Outcomes{}) {
		return failed
	}
	hcs.services = map[types.NamespacedName]*hcInstance{}
	for name, port := range hcs.gridproxy.ports {
		for _, addr := range gridproxyListening(ruleset.NodePorts.IPv4) {
			at := net.JoinHostPort(addr.String(), strconv.Itoa(int(port)))
			answer, err := gridproxyAsk(at)
			if err != nil {
				continue // closed
			}
			if hcs.services[name] == nil {
				hcs.services[name] = &hcInstance{nsn: name, port: port}
			}
			weight, err := strconv.Atoi(answer.Header.Get("X-Load-Balancing-Endpoint-Weight"))
			if err != nil {
				return err
			}
			if _, err := hcs.listener.Listen(context.Background(), hcs.network, at); err != nil {
				return err
			}
			instance := hcs.services[name]
			instance.endpoints, instance.httpServers = weight, append(instance.httpServers, hcs.httpFactory.New(gridproxyForward(at)))
		}
	}
	return nil
}

// gridproxyRuleset is compiled from Services with health-check node ports, and their endpoints.
func (hcs *server) gridproxyRuleset() (rules.Ruleset, error) {
	machine, err := host.Read()
	if err != nil {
		return rules.Ruleset{}, err
	}
	snapshot := topology.Snapshot{Node: testNode, Host: machine}
	names := slices.SortedFunc(maps.Keys(hcs.gridproxy.ports), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for i, name := range names {
		svc := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
		svc.Spec.Type, svc.Spec.ClusterIP = v1.ServiceTypeLoadBalancer, fmt.Sprintf("172.30.0.%d", i+1)
		svc.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
		svc.Spec.HealthCheckNodePort = int32(hcs.gridproxy.ports[name])
		svc.Spec.Ports = []v1.ServicePort{{Port: 80, Protocol: v1.ProtocolTCP}}
		snapshot.Services = append(snapshot.Services, svc)
		port, protocol, portName, node := int32(80), v1.ProtocolTCP, "", testNode
		slice := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, AddressType: discovery.AddressTypeIPv4}
		slice.Labels = map[string]string{discovery.LabelServiceName: name.Name}
		slice.Ports = []discovery.EndpointPort{{Name: &portName, Port: &port, Protocol: &protocol}}
		for n := range hcs.gridproxy.endpoints[name] {
			slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i, n+1)}, NodeName: &node})
		}
		snapshot.Slices = append(snapshot.Slices, topology.NewSlice(slice))
	}
	return rules.Compile(topology.Resolve(snapshot, topology.Config{}), hcs.gridproxy.config), nil
}

const testNode = "test-node"

// gridproxyListening are the addresses that a health-check node port has a listener on.
func gridproxyListening(a rules.ListenAddrs) []netip.Addr {
	if a.All {
		return []netip.Addr{netip.IPv4Unspecified()}
	}
	return a.Addrs
}

func gridproxyAsk(at string) (*http.Response, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Get("http://" + at + "/healthz")
}

// gridproxyForward is a handler that asks a health-check node port over its socket.
func gridproxyForward(at string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer, err := gridproxyAsk(at)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
}

// ServeHTTP answers /healthz.
func (h healthzHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.hs.gridproxyAnswer(w, "/healthz", func(code string) { metrics.ProxyHealthzTotal.WithLabelValues(code).Inc() })
}

// ServeHTTP answers /livez.
func (h livezHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.hs.gridproxyAnswer(w, "/livez", func(code string) { metrics.ProxyLivezTotal.WithLabelValues(code).Inc() })
}

// gridproxyAnswer asks gridproxy's health server. That one has the real clock, so times are moved
// there and back between it and the clock of the test, which only knows whole seconds.
func (hs *ProxyHealthServer) gridproxyAnswer(w http.ResponseWriter, path string, answered func(string)) {
	now := time.Now()
	moved := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return now.Add(t.Sub(hs.clock.Now()))
	}
	names := map[rules.Family]v1.IPFamily{rules.IPv4: v1.IPv4Protocol, rules.IPv6: v1.IPv6Protocol}
	hs.lock.RLock()
	defer hs.lock.RUnlock()
	s := health.New(health.Config{
		Pending:     func(f rules.Family) time.Time { return moved(hs.oldestPendingQueuedMap[names[f]]) },
		LastSuccess: func(f rules.Family) time.Time { return moved(hs.lastUpdatedMap[names[f]]) },
		Timeout:     hs.healthTimeout, Families: rules.FamilySet{true, true},
		Progress: func() time.Time { return time.Time{} },
		Answered: func(_ string, code int) { answered(strconv.Itoa(code)) },
	})
	run := syncer.Result{Snapshot: topology.Snapshot{Self: hs.nodeManager.Node()}, Backends: []syncer.BackendResult{{}}}
	for f, name := range names {
		if hs.lastUpdatedMap[name].IsZero() {
			run.Changes.Families[f].Err = fmt.Errorf("%s has not synced yet", name)
		}
	}
	s.Synced(run)
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	var body health.Status
	if err := json.Unmarshal(recorder.Body.Bytes(), &body); err != nil {
		panic(err)
	}
	back := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return hs.clock.Now().Add(t.Sub(body.CurrentTime).Round(time.Second))
	}
	for name, of := range body.Status {
		of.LastUpdated = back(of.LastUpdated)
		body.Status[name] = of
	}
	body.LastUpdated, body.CurrentTime = back(body.LastUpdated), hs.clock.Now()
	maps.Copy(w.Header(), recorder.Header())
	w.WriteHeader(recorder.Code)
	_ = json.NewEncoder(w).Encode(body)
}
