package agreement

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/proxy/iptables"
	proxyutil "k8s.io/kubernetes/pkg/proxy/util"
	utiliptables "k8s.io/kubernetes/pkg/util/iptables"
	fakeiptables "k8s.io/kubernetes/pkg/util/iptables/testing"
)

// kubeProxy is what the real kube-proxy makes of a Cluster in the calling thread's
// network namespace, fed with other EndpointSlices than the Cluster's own. NFAcct
// counters are in its rules if the kernel has them.
func kubeProxy(c Cluster, pruned []*discoveryv1.EndpointSlice) (Result, error) {
	var r Result
	for family := range r.Text {
		p, err := newProxier(c, family == 1)
		if err != nil {
			return Result{}, err
		}
		p.feed(c, pruned)
		if r.Health[family], err = askHealth(c, p.ipv6); err == nil {
			r.Text[family], err = p.text()
		}
		p.close(c)
		if err != nil {
			return Result{}, err
		}
	}
	return r, nil
}

// proxier is the real Proxier of one family and the tables it writes into.
type proxier struct {
	*iptables.Proxier
	tables quotedFake
	ipv6   bool
}

// quotedFake quotes comments, as a shell would do for iptables; the fake alone writes them bare
// into its text, where no parser can tell words of a comment from options.
type quotedFake struct{ *fakeiptables.FakeIPTables }

func (f quotedFake) EnsureRule(position utiliptables.RulePosition, table utiliptables.Table, chain utiliptables.Chain, args ...string) (bool, error) {
	quoted := make([]string, len(args))
	for i, a := range args {
		if quoted[i] = a; strings.Contains(a, " ") {
			quoted[i] = `"` + a + `"`
		}
	}
	return f.FakeIPTables.EnsureRule(position, table, chain, quoted...)
}

// newProxier gives the Proxier what kube-proxy's own main gives it.
func newProxier(c Cluster, ipv6 bool) (*proxier, error) {
	p := &proxier{tables: quotedFake{fakeiptables.NewFake()}, ipv6: ipv6}
	if ipv6 {
		p.tables = quotedFake{fakeiptables.NewIPv6Fake()}
	}
	ctx := klog.NewContext(context.Background(), logr.Discard())
	ips := nodeIPs(c.self())
	var err error
	p.Proxier, err = constructProxier(ctx, proxierSettings{
		family: familyName(ipv6), tables: p.tables, masqueradeAll: c.Flags.MasqueradeAll,
		localhostNodePorts: c.Flags.LocalhostNodePorts, detector: detector(c, ipv6),
		node: c.Node, ip: ips[familyName(ipv6)],
		nodePortAddresses: nodePortAddresses(c.Flags.NodePortAddresses, ips),
	})
	if err != nil {
		return nil, fmt.Errorf("starting kube-proxy's Proxier: %w", err)
	}
	return p, nil
}

// proxierSettings are what newProxier decides, in the words of every release. constructProxier
// hands them to the constructor of the release that this is built with.
type proxierSettings struct {
	family             corev1.IPFamily
	tables             quotedFake
	masqueradeAll      bool
	localhostNodePorts bool // as on the command line: an IPv6 Proxier ignores it
	detector           proxyutil.LocalTrafficDetector
	node               string
	ip                 net.IP
	nodePortAddresses  []string
}

// masqueradeBit is the default of --iptables-masquerade-bit.
const masqueradeBit = 14

func familyName(ipv6 bool) corev1.IPFamily {
	if ipv6 {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// nodeIPs are the node's primary addresses as kube-proxy finds them: the first internal
// (else external) address, then the first one of the other family; loopback for a family
// without any.
func nodeIPs(node *corev1.Node) map[corev1.IPFamily]net.IP {
	ips := map[corev1.IPFamily]net.IP{corev1.IPv4Protocol: net.IPv4(127, 0, 0, 1), corev1.IPv6Protocol: net.IPv6loopback}
	if node == nil {
		return ips
	}
	found := map[corev1.IPFamily]bool{}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range node.Status.Addresses {
			if ip := net.ParseIP(a.Address); a.Type == kind && ip != nil {
				if family := familyName(ip.To4() == nil); !found[family] {
					found[family], ips[family] = true, ip
				}
			}
		}
	}
	return ips
}

// nodePortAddresses turns keywords into CIDRs before the Proxier sees them, as the main of
// kube-proxy 1.37 does. That of 1.36 does so with "primary" alone; its Proxier is the same.
func nodePortAddresses(flag []string, ips map[corev1.IPFamily]net.IP) []string {
	var cidrs []string
	for _, listed := range flag {
		cidrs = append(cidrs, expandKeyword(listed, ips)...)
	}
	return cidrs
}

// expandKeyword are the CIDRs that a keyword stands for on a node with these addresses, else the
// CIDR itself.
func expandKeyword(listed string, ips map[corev1.IPFamily]net.IP) []string {
	switch listed {
	case "localhost":
		return []string{"127.0.0.0/8", "::1/128"}
	case "all":
		return []string{"0.0.0.0/0", "::/0"}
	case "primary":
	default:
		return []string{listed}
	}
	var cidrs []string
	for family, bits := range map[corev1.IPFamily]string{corev1.IPv4Protocol: "/32", corev1.IPv6Protocol: "/128"} {
		if ip := ips[family]; !ip.IsLoopback() {
			cidrs = append(cidrs, netip.MustParseAddr(ip.String()).String()+bits)
		}
	}
	if len(cidrs) == 0 {
		return nowhere()
	}
	return cidrs
}

// nowhere is what gridproxy takes primary for while the Node object has no address, on purpose:
// CIDRs that hold no address of the machine. kube-proxy would open NodePorts everywhere, but does
// not get there: it waits for the addresses at its start, and keeps them or exits.
func nowhere() []string { return []string{"192.0.2.255/32", "2001:db8:ffff::ffff/128"} }

func detector(c Cluster, ipv6 bool) proxyutil.LocalTrafficDetector {
	var cidrs []string
	switch c.Flags.DetectLocalMode {
	case "BridgeInterface":
		return proxyutil.NewDetectLocalByBridgeInterface(c.Flags.PodInterface)
	case "InterfaceNamePrefix":
		return proxyutil.NewDetectLocalByInterfaceNamePrefix(c.Flags.PodInterface)
	case "NodeCIDR":
		if self := c.self(); self != nil {
			cidrs = self.Spec.PodCIDRs
		}
	default:
		cidrs = c.Flags.ClusterCIDRs
	}
	for _, cidr := range cidrs {
		if netip.MustParsePrefix(cidr).Addr().Is6() == ipv6 {
			return proxyutil.NewDetectLocalByCIDR(cidr)
		}
	}
	return proxyutil.NewNoOpLocalDetector()
}

// feed hands over the objects as kube-proxy's informers would, with their selectors, and
// syncs.
func (p *proxier) feed(c Cluster, pruned []*discoveryv1.EndpointSlice) {
	if self := c.self(); self != nil {
		if zone, found := self.Labels[corev1.LabelTopologyZone]; found {
			setZone(p.Proxier, c.Node, zone)
		}
	}
	for _, svc := range selected(c) {
		p.OnServiceAdd(svc)
	}
	for _, slice := range pruned {
		if !headless(slice) && (slice.AddressType == discoveryv1.AddressTypeIPv6) == p.ipv6 && slice.AddressType != discoveryv1.AddressTypeFQDN {
			p.OnEndpointSliceAdd(slice)
		}
	}
	p.OnServiceSynced()
	p.OnEndpointSlicesSynced()
}

// selected are the Services that the informer's selectors let through.
func selected(c Cluster) []*corev1.Service {
	var all []*corev1.Service
	for _, svc := range c.Services {
		if !handedOver(svc) && svc.Spec.ClusterIP != corev1.ClusterIPNone {
			all = append(all, svc)
		}
	}
	return all
}

// text is everything that the Proxier has written.
func (p *proxier) text() ([]byte, error) {
	var b bytes.Buffer
	for _, table := range []utiliptables.Table{utiliptables.TableFilter, utiliptables.TableNAT} {
		if err := p.tables.SaveInto(table, &b); err != nil {
			return nil, fmt.Errorf("reading table %s back: %w", table, err)
		}
	}
	return b.Bytes(), nil
}

// close takes the Services away again, which ends the health-check servers.
func (p *proxier) close(c Cluster) {
	for _, svc := range selected(c) {
		p.OnServiceDelete(svc)
	}
	p.OnServiceSynced()
}
