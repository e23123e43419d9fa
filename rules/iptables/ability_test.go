package iptables

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// sticky is a Service with session affinity.
func sticky(i int) *rules.Service {
	s := service(i, 2, 0)
	s.Affinity = time.Hour
	return s
}

// Without xt_recent, from the start or later, Services have no affinity.
func TestWithoutRecent(t *testing.T) {
	eachVariant(t, func(t *testing.T, v netfilter.Variant) {
		kernel := refusing(t)
		refuse(t, kernel, "-m recent")
		b, _ := newBackend(t, v, netfilter.IPv4)
		list := []*rules.Service{service(0, 2, 0), sticky(1)}
		mustSync(t, b, ruleset(list), false)
		loose := ruleset([]*rules.Service{list[0], service(1, 2, 0)})
		wantEqual(t, t, b, loose)
		if q, f := b.Quarantine(), b.WithoutAffinity(); len(q) > 0 || len(f) != 1 {
			t.Errorf("quarantined %+v, without affinity %v", q, f)
		}
		refuse(t, kernel)
		mustSync(t, b, ruleset(list), true)
		wantEqual(t, t, b, ruleset(list))
		if f := b.WithoutAffinity(); len(f) > 0 {
			t.Errorf("without affinity although the kernel has xt_recent now: %v", f)
		}

		refuse(t, kernel, "-m recent")
		list = append(list, sticky(2))
		mustSync(t, b, ruleset(list), false)
		wantEqual(t, t, b, ruleset([]*rules.Service{list[0], service(1, 2, 0), service(2, 2, 0)}))
	})
}

// Without statistic, connections cannot be spread: the start fails and names the module. If it goes
// missing later, no Service is quarantined for it, and it may come back.
func TestWithoutStatistic(t *testing.T) {
	private(t)
	kernel := refusing(t)
	refuse(t, kernel, "-m statistic")
	_, err := New(t.Context(), Config{Families: []netfilter.Family{netfilter.IPv4}, Variant: netfilter.VariantNFT, MasqueradeBit: 14})
	if err == nil || !strings.Contains(err.Error(), "xt_statistic") {
		t.Errorf("error %v, want one that names xt_statistic", err)
	}
	refuse(t, kernel)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	refuse(t, kernel, "-m statistic")
	if _, err := trySync(t, b, ruleset(services(3, 2)), false); err == nil || !strings.Contains(err.Error(), "xt_statistic") {
		t.Errorf("error %v, want one that names xt_statistic", err)
	}
	if q := b.Quarantine(); len(q) > 0 {
		t.Errorf("quarantined: %+v", q)
	}
	refuse(t, kernel)
	mustSync(t, b, ruleset(services(3, 2)), true)
	wantEqual(t, t, b, ruleset(services(3, 2)))
	if left := run(t, "iptables-nft-save"); strings.Contains(left, "SCRATCH") {
		t.Errorf("a failed start left:\n%s", left)
	}
}

// Without xt_sctp, SCTP Services are rejected from the start, on all ports of their addresses.
func TestWithoutSCTP(t *testing.T) {
	private(t)
	kernel := refusing(t)
	refuse(t, kernel, "-m sctp")
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	s := service(1, 2, 0)
	s.Name.Protocol = "SCTP"
	s.Frontends = append(s.Frontends, rules.Frontend{
		Addr: netip.MustParseAddrPort("0.0.0.0:30080"), Kind: rules.NodePort, Verdict: rules.Reject,
	})
	mustSync(t, b, ruleset([]*rules.Service{service(0, 2, 0), s}), false)
	text := run(t, "iptables-nft-save")
	var sctp []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, "sctp") {
			sctp = append(sctp, strings.TrimSpace(line))
		}
	}
	addr := s.Frontends[0].Addr.Addr().String()
	if len(sctp) != 1 || !strings.Contains(sctp[0], "-d "+addr+"/32 -p sctp") || !strings.Contains(sctp[0], "-j REJECT") {
		t.Errorf("rules for SCTP: %q, want one REJECT", sctp)
	}
	if q := b.Quarantine(); len(q) != 1 || !strings.Contains(q[0].Reason, "xt_sctp") {
		t.Errorf("quarantined: %+v", q)
	}
}

// Without xt_set, from the start or later, the rules of local DNS are left out; all others are
// written.
func TestWithoutSet(t *testing.T) {
	private(t)
	for set, family := range map[string]string{"KUBE-LOCAL-DNS": "inet", "KUBE-6-LOCAL-DNS": "inet6"} {
		run(t, "ipset create "+set+" hash:ip,port family "+family+" timeout 30")
	}
	kernel := refusing(t)
	refuse(t, kernel, "-m set")
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4, netfilter.IPv6)
	with := func(n int) rules.Ruleset {
		rs := ruleset(services(n, 2))
		rs.LocalDNS = rules.LocalDNS{Addrs: []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")}}
		return rs
	}
	mustSync(t, b, with(1), false)
	wantEqual(t, t, b, ruleset(services(1, 2)))
	if got := b.WithoutLocalDNS(); len(got) != 2 {
		t.Errorf("without local DNS: %v, want both families", got)
	}
	refuse(t, kernel)
	mustSync(t, b, with(1), true)
	wantEqual(t, t, b, with(1))
	if got := b.WithoutLocalDNS(); len(got) > 0 {
		t.Errorf("without local DNS although the kernel has xt_set now: %v", got)
	}
	refuse(t, kernel, "-m set")
	run(t, "iptables-nft -t nat -F KUBE-LOCAL-DNS")
	mustSync(t, b, with(2), true)
	if got := b.WithoutLocalDNS(); len(got) != 1 || got[0] != netfilter.IPv4 {
		t.Errorf("without local DNS: %v, want the family whose rules had to be written again", got)
	}
	if text := run(t, "iptables-nft-save"); strings.Contains(text, "LOCAL-DNS") || strings.Count(text, toEndpoints(service(1, 2, 0))) == 0 {
		t.Errorf("want no rule of local DNS, and those of a new Service:\n%s", text)
	}
}
