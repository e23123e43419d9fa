package agreement

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The label keys that units are made of.
var unitKeys = []string{"location", "zone1", "example.com/rack"}

const (
	clusterCIDR4 = "10.244.0.0/16"
	clusterCIDR6 = "fd00:10:244::/48"
)

// Draw makes Cluster number n of a seed: the same one always.
func Draw(seed, number uint64) Cluster {
	d := &drawing{Rand: rand.New(rand.NewPCG(seed, number)), taken: map[string]bool{}, pool: map[string][2]discoveryv1.Endpoint{}}
	d.Cluster = Cluster{Seed: seed, Number: number, Node: "edge-1", LastKeys: map[types.UID][]string{}}
	for i := 1; i <= 2+d.IntN(5); i++ {
		d.addNode(i)
	}
	if d.chance(10) {
		d.Nodes = slices.DeleteFunc(d.Nodes, func(n *corev1.Node) bool { return n.Name == d.Node })
	}
	d.drawHost()
	d.drawFlags()
	for i := 1; i <= 1+d.IntN(6); i++ {
		d.addService(i)
	}
	if d.chance(30) {
		d.addAPIServer()
	}
	d.addStraySlices()
	d.drawIPVS()
	return d.Cluster
}

// drawing is a Cluster in the making.
type drawing struct {
	*rand.Rand
	Cluster
	taken map[string]bool                    // slice names, and node ports, in use
	pool  map[string][2]discoveryv1.Endpoint // what each address is: staying, terminating
}

// chance is true in so many of a hundred cases.
func (d *drawing) chance(percent int) bool { return d.IntN(100) < percent }

func oneOf[T any](d *drawing, all ...T) T { return all[d.IntN(len(all))] }

// someOf keeps each in half of the cases, in a random order.
func someOf[T any](d *drawing, all ...T) []T {
	var some []T
	for _, i := range d.Perm(len(all)) {
		if d.chance(50) {
			some = append(some, all[i])
		}
	}
	return some
}

func (d *drawing) addNode(i int) {
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("edge-%d", i), Labels: map[string]string{}},
	}
	if !d.chance(10) { // else a node without any label
		for _, key := range unitKeys {
			switch {
			case d.chance(20):
			case d.chance(10):
				n.Labels[key] = ""
			default:
				n.Labels[key] = oneOf(d, "beijing", "beijing", "guangzhou", "3")
			}
		}
		if d.chance(80) {
			n.Labels[corev1.LabelTopologyZone] = oneOf(d, "z1", "z2")
		}
	}
	ip4, ip6 := fmt.Sprintf("192.168.0.%d", 10+i), fmt.Sprintf("fd00:192:168::%d", 10+i)
	addresses := oneOf(d, []string{ip4, ip6}, []string{ip4, ip6}, []string{ip4, ip6}, []string{ip6, ip4}, []string{ip4}, []string{ip6})
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	if d.chance(20) {
		external := corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: fmt.Sprintf("198.18.0.%d", i)}
		n.Status.Addresses = slices.Insert(n.Status.Addresses, 0, external)
	}
	n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.Name})
	n.Spec.PodCIDRs = oneOf(d, []string{podCIDR4(i), podCIDR6(i)}, []string{podCIDR4(i), podCIDR6(i)}, []string{podCIDR6(i), podCIDR4(i)}, []string{podCIDR4(i)}, nil)
	if len(n.Spec.PodCIDRs) > 0 {
		n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
	}
	d.Nodes = append(d.Nodes, n)
}

func podCIDR4(i int) string { return fmt.Sprintf("10.244.%d.0/24", i) }
func podCIDR6(i int) string { return fmt.Sprintf("fd00:10:244:%d::/64", i) }

// podAddr is address number n among the Pods of node i.
func podAddr(i, n int, ipv6 bool) string {
	if ipv6 {
		return fmt.Sprintf("fd00:10:244:%d::%d", i, n)
	}
	return fmt.Sprintf("10.244.%d.%d", i, n)
}

// drawHost gives this machine its addresses: the Node's, the Pods' gateway, and some that
// the Node object does not tell of.
func (d *drawing) drawHost() {
	add := func(texts ...string) {
		for _, text := range texts {
			d.HostAddrs = append(d.HostAddrs, netip.MustParseAddr(text))
		}
	}
	add("192.168.0.11", "fd00:192:168::11")
	if d.chance(70) {
		add(podAddr(1, 1, false), podAddr(1, 1, true))
	}
	if d.chance(50) {
		add("172.20.7.7", "fd00:172:20::7")
	}
	if d.chance(30) {
		add("198.18.0.1")
	}
}

func (d *drawing) drawFlags() {
	f := &d.Flags
	f.NodesWithoutUnit = oneOf(d, "closed", "closed", "local", "open")
	f.MasqueradeAll = d.chance(20)
	f.LocalhostNodePorts = d.chance(65)
	f.NodePortAddresses = oneOf(d, nil, nil, nil,
		[]string{"primary"},
		[]string{"192.168.0.0/16"},
		[]string{"fd00:192:168::/64"},
		[]string{"127.0.0.0/8", "192.168.0.0/16", "fd00::/8"},
		[]string{"127.0.0.1/32", "::1/128"},
		[]string{"127.1.2.0/24"},
		[]string{"0.0.0.0/1", "fd00:172::/32"},
		[]string{"172.20.0.0/16", "::/0"},
		[]string{"192.0.2.0/24"},
		[]string{"localhost"},
		[]string{"all"},
		[]string{"primary", "localhost"},
		[]string{"172.20.0.0/16", "primary"},
		[]string{"all", "192.168.0.0/16", "localhost"},
		[]string{"fd00:172::/32", "localhost", "primary"},
	)
	f.DetectLocalMode = oneOf(d, "ClusterCIDR", "ClusterCIDR", "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix")
	switch f.DetectLocalMode {
	case "ClusterCIDR":
		f.ClusterCIDRs = oneOf(d, []string{clusterCIDR4, clusterCIDR6}, []string{clusterCIDR4, clusterCIDR6},
			[]string{clusterCIDR4}, []string{clusterCIDR6}, nil, []string{clusterCIDR4, "10.250.0.0/16", clusterCIDR6})
	case "BridgeInterface":
		f.PodInterface = bridge
	case "InterfaceNamePrefix":
		f.PodInterface = veths
	}
}

// drawIPVS draws what only IPVS mode asks for. It is drawn last: the rest of a Cluster is
// the same with and without it.
func (d *drawing) drawIPVS() {
	d.Flags.IPVSExclude = oneOf(d, nil, nil, nil, nil,
		[]string{"203.0.113.0/24", "2001:db8:e::/48"},
		[]string{"198.51.100.1/32", "198.51.100.20/30", "2001:db8:1b::/48"},
		[]string{"10.96.0.11/32", "fd00:10:96::11/128"},
		[]string{"172.20.7.7/32"},
		[]string{"192.168.0.11/32", "fd00:172:20::/64"},
	)
}
