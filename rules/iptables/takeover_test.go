package iptables

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kubeProxyRules returns a file of testdata. kube-proxy.rules is how kube-proxy writes three
// Services: its own comments, order of matches and order of Services, no comments in the
// endpoints' chains, and its canary.
func kubeProxyRules(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func tcpService(name, port, clusterIP string, endpoints ...string) *rules.Service {
	s := &rules.Service{
		Name: topology.ServicePortName{
			NamespacedName: types.NamespacedName{Namespace: "ns1", Name: name}, Port: port, Protocol: corev1.ProtocolTCP,
		},
		Frontends: []rules.Frontend{{Addr: netip.MustParseAddrPort(clusterIP), Kind: rules.ClusterIP, Verdict: rules.Reject}},
	}
	if len(endpoints) == 0 {
		return s
	}
	set := rules.EndpointSet{}
	for _, e := range endpoints {
		set.Endpoints = append(set.Endpoints, netip.MustParseAddrPort(e))
	}
	s.Sets = []rules.EndpointSet{set}
	s.Frontends[0].Routes = []rules.Route{{From: rules.Any, Masquerade: rules.OffCluster}}
	return s
}

// takenOver are the Services of kubeProxyRules; closed ones have the given endpoints.
func takenOver(closed ...string) rules.Ruleset {
	plain := tcpService("plain", "p80", "172.30.0.42:80", "10.180.0.2:80")
	plain.Frontends = append(plain.Frontends, rules.Frontend{
		Addr: netip.MustParseAddrPort("0.0.0.0:30042"), Kind: rules.NodePort, Verdict: rules.Reject,
		Routes: []rules.Route{{From: rules.Any, Masquerade: rules.Always}},
	})
	return rules.Ruleset{
		Services: []*rules.Service{
			tcpService("closed", "p80", "172.30.0.41:80", closed...),
			tcpService("empty", "p80", "172.30.0.43:80"),
			plain,
		},
		NodePorts: rules.NodePortScope{IPv4: rules.ListenAddrs{All: true}, Localhost: true},
		Local:     rules.LocalDetector{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	}
}

// After kube-proxy, the first sync changes only what closure changes, in one restore. If closure
// changes nothing, it writes nothing.
func TestTakeover(t *testing.T) {
	all := []string{"10.180.0.1:80", "10.180.0.3:80", "10.180.0.4:80"}
	closed := takenOver().Services[0].Name
	gone := render.EndpointChain(netfilter.KubeNames, closed, netip.MustParseAddrPort(all[0]))
	eachVariant(t, func(t *testing.T, v netfilter.Variant) {
		b, sent := newBackend(t, v, netfilter.IPv4) // creates the nfacct objects, as kube-proxy does
		err := ensureAcct()
		need.That(t, err == nil, fmt.Sprintf("this kernel has no nfacct: %v", err))
		install(t, v, netfilter.IPv4, kubeProxyRules(t, "kube-proxy.rules"), kubeProxyJumps)

		mustSync(t, b, takenOver(all...), false)
		if inputs := sent.take(); len(inputs) > 0 {
			t.Errorf("without a closed Service this was written:\n%s", strings.Join(inputs, "\n"))
		}
		wantEqual(t, t, b, takenOver(all...))

		b, sent = newBackend(t, v, netfilter.IPv4)
		mustSync(t, b, takenOver(all[1:]...), false)
		inputs := sent.take()
		want := []string{"nat/" + gone, "nat/" + render.TrafficPolicyChain(netfilter.KubeNames, closed, rules.Cluster)}
		if diff := cmp.Diff(want, touched(inputs)); diff != "" || len(inputs) != 1 {
			t.Errorf("%d restores; chains written to (-want +got):\n%s\n%s", len(inputs), diff, strings.Join(inputs, "\n"))
		}
		wantEqual(t, t, b, takenOver(all[1:]...))

		b, sent = newBackend(t, v, netfilter.IPv4)
		mustSync(t, b, takenOver(), false) // no endpoint left in the unit: rejected
		inputs = sent.take()
		if len(inputs) != 1 || strings.Index(inputs[0], "*filter") > strings.Index(inputs[0], "*nat") ||
			!strings.Contains(inputs[0], "-I KUBE-SERVICES -d 172.30.0.41/32 -p tcp") || strings.Contains(inputs[0], ":KUBE-SERVICES") {
			t.Errorf("%d restores:\n%s", len(inputs), strings.Join(inputs, "\n"))
		}
		wantEqual(t, t, b, takenOver())
		if text := run(t, toolName(v, netfilter.IPv4, "-save")+" -t mangle"); !strings.Contains(text, netfilter.ChainProxyCanary) {
			t.Error("kube-proxy's canary is gone: only cleanup removes it")
		}
	})
}

// install restores kube-proxy's text and inserts the jumps as it does: one by one, each at the top.
func install(t *testing.T, v netfilter.Variant, f netfilter.Family, text, jumps string) {
	t.Helper()
	file := t.TempDir() + "/rules"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, toolName(v, f, "-restore")+" -w 5 --noflush --counters <"+file)
	for line := range strings.Lines(jumps) {
		run(t, toolName(v, f, "")+" -w 5 "+line)
	}
}

const kubeProxyJumps = `-t filter -I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-t filter -I FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-t filter -I INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-t filter -I FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-t filter -I OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-t filter -I FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-t filter -I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-t filter -I OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-t filter -I FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-t filter -I INPUT -j KUBE-FIREWALL
-t filter -I OUTPUT -j KUBE-FIREWALL
-t nat -I OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-t nat -I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-t nat -I POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
`
