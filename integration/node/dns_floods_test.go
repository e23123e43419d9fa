package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dnsFloods returns what a tenant or Pod does so that queries are led to the DNS of the cluster,
// where closed names are open.
func dnsFloods() []dnsFault {
	const rate, queries = 500, 4000
	return []dnsFault{
		{name: "16 large slices", rate: rate, queries: queries, closed: true, lasts: true, strike: changeLargeService},
		{name: "SRV queries", rate: rate, queries: queries, lost: queries / 20, closed: true, lasts: true, strike: floodWithSRV},
		{name: "outside names", rate: rate, queries: queries, lost: queries / 20, closed: true, lasts: true, strike: floodWithOutsideNames},
		{name: "slow", rate: 200, queries: 1500, closed: true, lasts: true, strike: slowDNS},
	}
}

// stealDNSAddresses makes Services with the addresses of this node's DNS, one in each field that a
// tenant may write.
func stealDNSAddresses(d *dnsNode, _ []*netns.Process) {
	d.t.Helper()
	fields := map[string]func(*corev1.Service, netip.Addr){
		"thief-external": func(s *corev1.Service, a netip.Addr) { s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, a.String()) },
		"thief-balancer": func(s *corev1.Service, a netip.Addr) {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a.String()})
		},
	}
	i := byte(0x60)
	for name, write := range fields {
		i++
		thief := netns.NewService(name, netip.AddrFrom4([4]byte{10, 96, 0, i}), netip.MustParseAddr(fmt.Sprintf("fd00:96::%x", i)))
		thief.Spec.Type = corev1.ServiceTypeLoadBalancer
		thief.Spec.Ports = []corev1.ServicePort{dnsPort("dns", corev1.ProtocolUDP), dnsPort("dns-tcp", corev1.ProtocolTCP)}
		for _, a := range localDNS {
			write(thief, a)
		}
		d.objects.Serve(thief, d.server)
	}
	must(d.t, d.objects.Write())
	wait.Until(d.t, "the daemon refuses the addresses", func() error {
		log := d.daemon.Log()
		return wait.Check(log.Contains("default/thief-external") && log.Contains("default/thief-balancer"), "it logged:\n%s", log)
	})
	d.pass(5)
	var direct []traffic.Way
	for _, a := range localDNS {
		direct = append(direct, traffic.Way{From: d.client.Namespace, To: netip.AddrPortFrom(a, portDNS)})
	}
	d.answered(direct, dnsOfNode)
}

// changeLargeService makes a Service of 16 slices as large as an API server takes them, and changes
// one endpoint of it twice a second.
func changeLargeService(d *dnsNode, _ []*netns.Process) {
	d.t.Helper()
	d.addCrowd(16, 1000)
	for i := range 16 {
		d.await(d.load.Sends() + d.rate/2)
		d.writeCrowd(0, 1000-i%2)
	}
	late := newHeadless("late")
	d.objects.Serve(late, d.server)
	must(d.t, d.objects.Write())
	d.resolves("late.shop.svc.cluster.local.", dns.TypeA)
}

// floodWithSRV has a Pod ask 300 times a second for the ports of a Service that has 400,000 pairs
// of an endpoint and a port.
func floodWithSRV(d *dnsNode, _ []*netns.Process) {
	d.t.Helper()
	d.addCrowd(4, 1000)
	d.flood(300, d.server.Spec.Addrs, func(int) *dns.Msg {
		return new(dns.Msg).SetQuestion(crowdName, dns.TypeSRV).SetEdns0(dns.DefaultMsgSize, false)
	})
}

// floodWithOutsideNames has a Pod ask 2,000 times a second for names of silentZone, from more
// addresses than there is room for.
func floodWithOutsideNames(d *dnsNode, _ []*netns.Process) {
	d.t.Helper()
	from := slices.Clone(d.server.Spec.Addrs)
	for i := range 32 {
		addr := netip.MustParseAddr(fmt.Sprintf("fd00:10:1::f:%x", i))
		_, err := d.server.Run(d.ctx, nil, "ip", "addr", "add", addr.String()+"/128", "dev", "eth0", "nodad")
		must(d.t, err)
		from = append(from, addr)
	}
	d.flood(2000, from, func(n int) *dns.Msg { return new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.%s", n, silentZone), dns.TypeA) })
}

// slowDNS stops the server again and again, each time for less than a client waits, while no answer
// over UDP reaches the daemon in time.
func slowDNS(d *dnsNode, servers []*netns.Process) {
	d.t.Helper()
	for _, a := range localDNS {
		tool := "iptables-nft"
		if a.Is6() {
			tool = "ip6tables-nft"
		}
		_, err := d.node.Run(d.ctx, nil, tool, "-t", "mangle", "-A", "INPUT", "-p", "udp", "-s", a.String(), "--sport", "53", "-d", a.String(), "-j", "DROP")
		must(d.t, err)
	}
	for range 8 {
		d.suspend(servers[0])
		d.await(d.load.Sends() + d.rate/2)
		d.resume(servers[0])
		d.await(d.load.Sends() + d.rate/4)
	}
}

// crowdName is that of the Service with many endpoints and ports.
const crowdName = "crowd.shop.svc.cluster.local."

// addCrowd makes that Service, and waits until its name is answered.
func (d *dnsNode) addCrowd(count, endpoints int) {
	d.t.Helper()
	for i := range count {
		d.writeCrowd(i, endpoints)
	}
	d.objects.Services = append(d.objects.Services, newHeadless("crowd"))
	must(d.t, d.objects.Write())
	d.resolves(crowdName, dns.TypeA)
}

// writeCrowd writes one slice of the Service, with 100 ports, whose endpoints are all in this unit.
func (d *dnsNode) writeCrowd(number, endpoints int) {
	d.t.Helper()
	slice := discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("crowd-%d", number), Labels: map[string]string{discoveryv1.LabelServiceName: "crowd"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for port := range int32(100) {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(fmt.Sprintf("a-long-name-%d", port)), Protocol: new(corev1.ProtocolTCP), Port: new(1000 + port)})
	}
	addr := netip.AddrFrom4([4]byte{10, 0, 64 + byte(number)*4, 0})
	for range endpoints {
		addr = addr.Next()
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr.String()}, Hostname: new("host-" + strings.ReplaceAll(addr.String(), ".", "-")), NodeName: new(here)})
	}
	text, err := json.Marshal(slice)
	must(d.t, err)
	must(d.t, need.Replace(filepath.Join(d.manifests, slice.Name+".json"), text))
}

// resolves waits until grid-dns has records of a name.
func (d *dnsNode) resolves(name string, qtype uint16) {
	d.t.Helper()
	client := dns.Client{Net: "tcp"}
	wait.Until(d.t, name+" has records", func() error {
		conn, err := d.node.Dial(d.ctx, "tcp", netip.AddrPortFrom(localDNS[0], portDNS))
		if err != nil {
			return err
		}
		defer conn.Close()
		answer, _, err := client.ExchangeWithConn(new(dns.Msg).SetQuestion(name, qtype), &dns.Conn{Conn: conn})
		if err != nil {
			return err
		}
		return wait.Check(len(answer.Answer) > 0, "the answer is\n%s", answer)
	})
}

// flood has another Pod send so many queries a second, from some addresses in turn, for six
// seconds. It reads no answer.
func (d *dnsNode) flood(rate int, from []netip.Addr, query func(n int) *dns.Msg) {
	d.t.Helper()
	conns := make([]net.Conn, len(from))
	for i, addr := range from {
		to := clusterDNS[0]
		if addr.Is6() {
			to = clusterDNS[1]
		}
		must(d.t, d.server.Do(func() (err error) {
			conns[i], err = net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, portDNS)))
			return err
		}))
		defer conns[i].Close()
	}
	sent := 0 // by the one way
	flood := traffic.Start(rate, func(context.Context, traffic.Way) (traffic.Ask, error) {
		sent++
		text, err := query(sent).Pack()
		if err == nil {
			_, err = conns[sent%len(conns)].Write(text)
		}
		return func() traffic.Question { return traffic.Question{Outcome: traffic.Local} }, err
	}, traffic.Way{From: d.server.Namespace})
	d.pass(6)
	tally, err := flood.Stop()
	must(d.t, err)
	must(d.t, tally.NotMeasured(0))
	d.t.Logf("the other Pod sent %d queries", sent)
}

// maxDNSMemory bounds what grid-dns takes, in KiB.
const maxDNSMemory = 128 << 10

func peakMemory(pid int) (kib int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscan(rest, &kib)
	return kib, err
}
