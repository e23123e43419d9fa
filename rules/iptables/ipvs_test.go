package iptables

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// withoutIPVSMatch reports whether the rule with -m ipvs must be written without it.
var withoutIPVSMatch = sync.OnceValue(func() bool { return need.MissingIPVS() != "" })

// makeSets creates the sets that the fixed chains name, in the calling goroutine's namespace.
func makeSets(t testing.TB) {
	t.Helper()
	mustBePrivate(t)
	for f, number := range map[netfilter.Family]uint8{netfilter.IPv4: unix.AF_INET, netfilter.IPv6: unix.AF_INET6} {
		for name, kind := range netfilter.SetTypes() {
			if err := netlink.IpsetCreate(netfilter.SetName(f, name), kind, netlink.IpsetCreateOptions{Family: number}); err != nil {
				t.Fatalf("making set %s: %v", netfilter.SetName(f, name), err)
			}
		}
	}
}

// After either mode, a new Backend of the other mode leaves what it would write from scratch, in
// one restore for each table.
func TestModesFollowEachOther(t *testing.T) {
	list := append(services(4, 2), nodePortService(4), service(5, 0, 0))
	full, small := ruleset(list), rulestest.Residual{}.Of(ruleset(list))
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		makeSets(t)
		fresh, _ := newBackendOf(t, v, false, f)
		mustSync(t, fresh, full, false)
		scratch := sorted(everything(t, v, f))
		for range 2 {
			b, sent := newBackendOf(t, v, true, f)
			mustSync(t, b, small, false)
			wantOneRestore(t, sent)
			wantEqual(t, t, b, small)
			if text := everything(t, v, f); strings.Contains(text, clusterChain(list[0])) {
				t.Errorf("the chain of a Service that a virtual server serves is still there:\n%s", text)
			}
			b, sent = newBackendOf(t, v, false, f)
			mustSync(t, b, full, false)
			wantOneRestore(t, sent)
			wantEqual(t, t, b, full)
			if diff := cmp.Diff(scratch, sorted(everything(t, v, f))); diff != "" {
				t.Errorf("iptables mode differs from what it is from scratch (-want +got):\n%s", diff)
			}
		}
		removeSets(t) // no rule names them any more
	})
}

// With so many Services their chains are written ahead, in batches. What leads to the shared chains
// must not come before these.
func TestIPVSColdStartInBatches(t *testing.T) {
	rs := ruleset(services(createMax+1, 1))
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		makeSets(t)
		b, _ := newBackendOf(t, v, true, f)
		mustSync(t, b, rs, true)
		wantEqual(t, t, b, rs)
	})
}

func wantOneRestore(t *testing.T, sent *recorder) {
	t.Helper()
	if inputs := sent.take(); len(inputs) != 1 {
		t.Errorf("%d restores, want one:\n%s", len(inputs), strings.Join(inputs, "\n"))
	}
}

// removeSets destroys our sets, which the kernel refuses while a rule names them.
func removeSets(t *testing.T) {
	t.Helper()
	mustBePrivate(t)
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		for name := range netfilter.SetTypes() {
			if err := netlink.IpsetDestroy(netfilter.SetName(f, name)); err != nil {
				t.Errorf("destroying set %s: %v", netfilter.SetName(f, name), err)
			}
		}
	}
}

func sorted(text string) []string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return lines
}

// The next verify repairs every change to the fixed chains.
func TestIPVSTamperingIsRepaired(t *testing.T) {
	list := append(services(2, 2), nodePortService(4), service(5, 0, 0), verdictService(6), verdictService(7))
	rs := rulestest.Residual{}.Of(ruleset(list))
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		ns := here(t)
		makeSets(t)
		b, sent := newBackendOf(t, v, true, f)
		mustSync(t, b, rs, true)
		for _, tc := range ipvsTamperings(f) {
			t.Run(tc.name, func(t *testing.T) {
				enter(t, ns)
				tc.check(t, b, sent, rs)
			})
		}
	})
}

func ipvsTamperings(f netfilter.Family) []tampering {
	set := netfilter.SetName(f, netfilter.SetClusterIP)
	return []tampering{
		{name: "the chains' jump deleted", do: "$N -D KUBE-SERVICES 1", want: []string{"nat/KUBE-SERVICES"}, removed: true},
		{name: "rules in another order", do: "$N -D KUBE-SERVICES 1; $N -A KUBE-SERVICES -m set --match-set " +
			netfilter.SetName(f, netfilter.SetChains) + " dst,dst -j KUBE-IPVS-CHAINS", want: []string{"nat/KUBE-SERVICES"}, removed: true},
		{name: "another set", do: "$N -R KUBE-SERVICES 2 -m set --match-set " + set + " src,dst -j KUBE-MARK-MASQ", want: []string{"nat/KUBE-SERVICES"}},
		{name: "the hairpin deleted", do: "$N -D KUBE-POSTROUTING 1", want: []string{"nat/KUBE-POSTROUTING"}, removed: true},
		{name: "an entry added", do: "$N -I KUBE-IPVS-CHAINS -p tcp -j KUBE-MARK-MASQ", want: []string{"nat/KUBE-IPVS-CHAINS"}},
		{name: "the chains flushed", do: "$N -F KUBE-IPVS-CHAINS", want: []string{"nat/KUBE-IPVS-CHAINS"}, removed: true},
		{name: "the filter flushed", do: "$T -F KUBE-IPVS-FILTER", want: []string{"filter/KUBE-IPVS-FILTER"}, removed: true},
		{name: "the filter's jump not last", do: "$T -D KUBE-EXTERNAL-SERVICES 3; $T -I KUBE-EXTERNAL-SERVICES -j KUBE-IPVS-FILTER",
			want: []string{"filter/KUBE-EXTERNAL-SERVICES"}, removed: true},
		{name: "the NodePort jump not last", do: "$N -D KUBE-IPVS-CHAINS 3; $N -I KUBE-IPVS-CHAINS -m addrtype --dst-type LOCAL " +
			loopbackToo(f) + " -j KUBE-NODEPORTS", want: []string{"nat/KUBE-IPVS-CHAINS"}, removed: true},
		{name: "more jumps than are deleted from a chain of ours", do: "$T -A INPUT -p udp --dport 53 -j ACCEPT; " +
			"{ echo '*filter'; for i in $(seq 70); do echo '-I INPUT -j KUBE-IPVS-FILTER'; done; echo COMMIT; } | $R --noflush",
			want: []string{"filter/INPUT"}, undo: "$T -D INPUT -p udp --dport 53 -j ACCEPT"},
		{name: "the filter's jump deleted", do: "$T -D KUBE-EXTERNAL-SERVICES 3", want: []string{"filter/KUBE-EXTERNAL-SERVICES"}, removed: true},
		{name: "a jump to the filter", do: "$T -I INPUT -j KUBE-IPVS-FILTER", want: []string{"filter/INPUT"}},
		{name: "a chain of kube-proxy's", do: "$N -N KUBE-LOAD-BALANCER; $N -I OUTPUT -j KUBE-LOAD-BALANCER", want: []string{"nat/KUBE-LOAD-BALANCER", "nat/OUTPUT"}},
	}
}

// loopbackToo is what the NodePort jump of ruleset has beside its local destination.
func loopbackToo(f netfilter.Family) string {
	if f == netfilter.IPv6 {
		return "! -d ::1/128"
	}
	return ""
}

// verdictService is service i with an external address that chains drop except for the node.
func verdictService(i int) *rules.Service {
	s := *service(i, 2, 0)
	for f, ip6 := range []bool{false, true} {
		s.Frontends = append(s.Frontends, rules.Frontend{
			Addr: address(ip6, 97, i, 80), Kind: rules.ExternalIP,
			Routes: []rules.Route{{From: rules.Node, Set: f, Masquerade: rules.Always}}, Verdict: rules.Drop,
		})
	}
	return &s
}
