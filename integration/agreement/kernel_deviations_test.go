package agreement

import (
	"errors"
	"net/netip"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"

	corev1 "k8s.io/api/core/v1"
)

// TestKernelDeviations pins, on a real kernel, the deviations of IPVS mode that a walk
// cannot see. docs/packet-path.md names the cases.
func TestKernelDeviations(t *testing.T) {
	need.IPVS(t)
	unlimitICMP(t)
	c := oneService()
	c.Flags.LocalhostNodePorts = true // loopback addresses are routed
	c.Services[0].Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	rr := c.Services[0].DeepCopy()
	rr.Name, rr.Spec.SessionAffinity = "rr", ""
	rr.Spec.ClusterIP, rr.Spec.ClusterIPs = "10.96.0.12", []string{"10.96.0.12", "fd00:10:96::12"}
	rr.Spec.ExternalIPs, rr.Status.LoadBalancer.Ingress, rr.Spec.Ports[0].NodePort = nil, nil, 30081
	c.Services = append(c.Services, rr)
	for _, slice := range c.Slices {
		other := slice.DeepCopy()
		other.Name, other.Labels[labelServiceName] = "rr-"+slice.Name, "rr"
		c.Slices = append(c.Slices, other)
	}
	err := onStage(c, func(s *stage) error {
		m, err := spellModes(c, spelling())
		if err != nil {
			return err
		}
		if err := program(m); err != nil {
			return err
		}
		for _, test := range []func(*testing.T, *stage, Cluster) error{pingRefused, roundRobin, affinityPerServer, noLoopbackSource, noForeignSource} {
			if err := test(t, s, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wire is a packet that comes in through the uplink.
func wire(number int, src, dst string) sent {
	to := netip.MustParseAddrPort(dst)
	return sent{number: number, flow: Flow{From: "outside", To: dst, Packet: trace.Packet{
		Src: netip.MustParseAddr(src), Dst: to.Addr(), DstPort: to.Port(), Proto: netfilter.TCP, InInterface: uplinkDev,
	}}}
}

// results sends packets one after the other and says what became of each.
func results(s *stage, c Cluster, all ...sent) ([]trace.End, error) {
	got, err := deliver(s, c, all, nil)
	if err != nil {
		return nil, err
	}
	ends := make([]trace.End, len(all))
	for i, p := range all {
		ends[i] = endOf(got, p)
	}
	return ends, nil
}

// pingRefused: an address of a virtual server does not answer a ping, and says so.
func pingRefused(t *testing.T, s *stage, _ Cluster) error {
	for i, pair := range [][2]string{{"192.0.2.9", "10.96.0.11"}, {"2001:db8::9", "fd00:10:96::11"}} {
		id := uint16(100 + i)
		if err := s.put(uplinkDev, echoRequest(netip.MustParseAddr(pair[0]), netip.MustParseAddr(pair[1]), id)); err != nil {
			return err
		}
		wait.Until(t, "a ping of "+pair[1]+" is refused", func() error {
			for _, about := range s.refusals() {
				if got, proto, ok := sourcePort(about); ok && got == id && (proto == icmp4 || proto == icmp6) {
					return nil
				}
			}
			return errors.New("it is not")
		})
	}
	return nil
}

// roundRobin: endpoints take turns.
func roundRobin(t *testing.T, s *stage, c Cluster) error {
	var all []sent
	for i := range 10 {
		all = append(all, wire(200+i, "192.0.2.9", "10.96.0.12:80"))
	}
	ends, err := results(s, c, all...)
	if err != nil {
		return err
	}
	count := map[netip.AddrPort]int{}
	for i, end := range ends {
		count[end.Dst]++
		if i > 0 && end.Dst == ends[i-1].Dst {
			t.Errorf("packets %d and %d went to the same endpoint", i-1, i)
		}
	}
	if len(count) != 2 {
		t.Errorf("10 packets went to %v, want two endpoints", count)
	}
	return nil
}

// affinityPerServer: a client keeps its endpoint at one address of a Service, and may have
// another one at another address.
func affinityPerServer(t *testing.T, s *stage, c Cluster) error {
	ends, err := results(s, c,
		wire(300, "192.0.2.1", "10.96.0.11:80"),
		wire(301, "192.0.2.2", "203.0.113.101:80"),
		wire(302, "192.0.2.1", "203.0.113.101:80"),
		wire(303, "192.0.2.1", "10.96.0.11:80"),
		wire(304, "192.0.2.1", "203.0.113.101:80"),
	)
	if err != nil {
		return err
	}
	internal, external := ends[0].Dst, ends[2].Dst
	if ends[3].Dst != internal || ends[4].Dst != external {
		t.Errorf("a client did not keep its endpoints: %v", ends)
	}
	if internal == external {
		t.Errorf("a client has the same endpoint at both addresses, although it was not its turn: %v", ends)
	}
	return nil
}

// noLoopbackSource: IPVS sends nothing with a loopback source to another machine, also where
// loopback addresses are routed.
func noLoopbackSource(t *testing.T, s *stage, c Cluster) error {
	p := wire(400, "127.0.0.1", "10.96.0.12:80")
	p.flow.Packet.InInterface = ""
	ends, err := results(s, c, p)
	if err == nil && ends[0].Verdict != trace.Dropped {
		t.Errorf("a packet from 127.0.0.1 to a virtual server: %v, want it dropped", ends[0])
	}
	return err
}

// noForeignSource: what comes in with the address of a virtual server as its source is a
// martian.
func noForeignSource(t *testing.T, s *stage, c Cluster) error {
	ends, err := results(s, c, wire(500, "198.51.100.1", "10.96.0.12:80"))
	if err == nil && ends[0].Verdict != trace.Dropped {
		t.Errorf("a packet that comes in from the address of a virtual server: %v, want it dropped", ends[0])
	}
	return err
}
