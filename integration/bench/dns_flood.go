package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dnsFlood is what one client gets while another floods a server with SRV queries of a Service that
// has 4,000 endpoints and 100 ports.
type dnsFlood struct {
	rate     int     // of the flood, queries a second, at which CoreDNS loses a share of the client's
	lost     float64 // that share
	answered float64 // the share that grid-dns answers at half of the rate
	memory   int     // what grid-dns had at most, in bytes
}

// Where the two clients ask from, and how much the second one asks.
const (
	floodFrom  = "169.254.20.31"
	askFrom    = "169.254.20.32"
	askRate    = "20" // queries a second
	floodShare = 0.05 // of its queries, that CoreDNS is to lose
	maxFlood   = 400  // queries a second; dnsperf waits for 1,000 answers at once, each for 2 s
)

// Of the flood's Service.
const (
	crowdName      = "crowd"
	crowdSlices    = 4
	crowdEndpoints = 1000 // of a slice
	crowdPorts     = 100
)

// measureFlood finds the rate at which CoreDNS loses queries of others, and floods grid-dns at half
// of it.
func (c *dnsCompare) measureFlood(ctx context.Context, s *dnsServers, load dnsLoader) (f dnsFlood, err error) {
	say("a flood of SRV queries, at which CoreDNS loses %.0f %% of another client's", 100*floodShare)
	name, err := c.seedCrowd(ctx, s)
	if err != nil {
		return f, err
	}
	questions := filepath.Join(c.world.dir, "flood")
	if err := os.WriteFile(questions, []byte(name+" SRV\n"), 0o644); err != nil {
		return f, err
	}
	for f.lost < floodShare {
		if f.rate = f.rate*5/4 + 1; f.rate > maxFlood {
			return f, fmt.Errorf("CoreDNS loses less than %.0f %% at %d queries a second", 100*floodShare, maxFlood)
		}
		if f.lost, err = load.lostBeside(ctx, s.named(dnsOfCluster), questions, f.rate); err != nil {
			return f, err
		}
		say("  at %d a second CoreDNS loses %.0f %%", f.rate, 100*f.lost)
	}
	server := s.named(dnsOfUnit)
	half := max(1, f.rate/2)
	lost, err := load.lostBeside(ctx, server, questions, half)
	if err != nil {
		return f, err
	}
	f.answered = 1 - lost
	say("  at %d a second grid-dns loses %.0f %%", half, 100*lost)
	held, err := memoryOf(server.PID())
	f.memory = held.peak
	return f, err
}

// lostBeside returns which share of one client's queries has no answer while another asks so many
// questions a second.
func (l dnsLoader) lostBeside(ctx context.Context, server *dnsServer, flood string, rate int) (share float64, err error) {
	flooded := make(chan error, 1)
	go func() {
		out, err := l.dnsperf(ctx, server, flood, "-a", floodFrom, "-e", "-q1000", "-l12", "-Q", strconv.Itoa(rate))
		if err == nil {
			var sent float64
			if sent, err = numberIn(out, dnsSent, 1); err == nil && sent < 0.9*float64(12*rate) {
				err = fmt.Errorf("dnsperf sent %.0f queries in 12 s, want %d a second", sent, rate)
			}
		}
		flooded <- err
	}()
	out, err := l.dnsperf(ctx, server, l.known, "-a", askFrom, "-l10", "-Q", askRate)
	if err = errors.Join(err, <-flooded); err != nil {
		return 0, err
	}
	answered, err := numberIn(out, dnsAnswered, 1)
	if err != nil {
		return 0, err
	}
	lost, err := numberIn(out, dnsLost, 1)
	return lost / max(1, lost+answered), err
}

// seedCrowd makes the Service of the flood, waits until both servers know it, and returns its name.
func (c *dnsCompare) seedCrowd(ctx context.Context, s *dnsServers) (name string, err error) {
	namespace := namedService{0}.namespace()
	name = crowdName + "." + namespace + ".svc.cluster.local"
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: crowdName}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: crowdName}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i := range int32(crowdPorts) {
		port := fmt.Sprintf("p%d", i)
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port, Port: new(1000 + i), Protocol: new(corev1.ProtocolTCP)})
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: port, Port: 1000 + i, Protocol: corev1.ProtocolTCP})
	}
	if _, err := c.world.api.CoreV1().Services(namespace).Create(ctx, svc, metav1.CreateOptions{}); err != nil {
		return name, fmt.Errorf("making Service %s: %w", crowdName, err)
	}
	addr := netip.AddrFrom4([4]byte{13, 0, 0, 0})
	for i := range crowdSlices {
		slice.Name, slice.Endpoints = fmt.Sprintf("%s-%d", crowdName, i), nil
		for range crowdEndpoints {
			addr = addr.Next()
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr.String()}, NodeName: new(podsNode)})
		}
		if _, err := c.world.api.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return name, fmt.Errorf("making EndpointSlice %s: %w", slice.Name, err)
		}
	}
	for _, server := range []string{dnsOfUnit, dnsOfCluster} {
		err = errors.Join(err, wait.For(ctx, func(context.Context) error { return c.knows(s.named(server), name) }))
	}
	time.Sleep(settleTime) // the last slice too
	return name, err
}
