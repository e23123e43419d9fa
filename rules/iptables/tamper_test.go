package iptables

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
)

// tampering is a change of our rules by another process.
type tampering struct {
	name string
	do   string   // commands; $T is the iptables tool, $N the same for table nat, $R restores
	undo string   // commands that restore the state before
	want []string // chains that restores then write to
	ip4  bool     // IPv4 only

	removed bool // what is written is nothing, or nothing that only a service proxy writes
}

// A Shadow shows every change of our rules, and the next verify repairs it. Neither shows or writes
// anything else.
func TestTamperingIsRepaired(t *testing.T) {
	list := append(services(4, 2), nodePortService(4), service(5, 0, 0))
	rs := ruleset(list)
	svc := clusterChain(list[1])
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		ns := here(t)
		if none := shadowed(t, v, f, rs); len(none) == 0 {
			t.Error("an empty kernel holds what is wanted")
		}
		b, sent := newBackend(t, v, f)
		mustSync(t, b, rs, true)
		if same := shadowed(t, v, f, rs); len(same) > 0 {
			t.Errorf("after a sync:\n%s", unified(t, same))
		}
		sep := render.EndpointChain(netfilter.KubeNames, list[1].Name, list[1].Sets[f].Endpoints[0])
		other := render.EndpointChain(netfilter.KubeNames, list[2].Name, list[2].Sets[f].Endpoints[0])
		for _, tc := range tamperings(svc, sep, other, f) {
			if tc.ip4 && f != netfilter.IPv4 {
				continue
			}
			t.Run(tc.name, func(t *testing.T) {
				enter(t, ns)
				tc.check(t, b, sent, rs)
			})
		}
	})
}

func (tc tampering) check(t *testing.T, b *Backend, sent *recorder, rs rules.Ruleset) {
	f := b.syncers[0].kernel.family
	tool := toolName(b.variant, f, "")
	commands := strings.NewReplacer("$T", tool+" -w 5", "$N", tool+" -w 5 -t nat", "$R", toolName(b.variant, f, "-restore")+" -w 5")
	run(t, commands.Replace(tc.do))
	if !b.config.IPVS {
		tc.wantShown(t, shadowed(t, b.variant, f, rs))
	}
	sent.take()
	c := mustSync(t, b, rs, true)
	inputs := sent.take()
	if diff := cmp.Diff(tc.want, touched(inputs)); diff != "" {
		t.Errorf("chains written to (-want +got):\n%s\n%s", diff, strings.Join(inputs, "\n"))
	}
	if !c.Verified || c.Repaired == 0 {
		t.Errorf("%+v, want the repair to be counted", c)
	}
	if others := b.OtherWrites(); (others.Places > 0) == tc.removed {
		t.Errorf("written by others: %+v", others)
	}
	defer func() {
		run(t, commands.Replace(tc.undo))
		wantEqual(t, t, b, rs)
	}()
	if c := mustSync(t, b, rs, true); c.Chains > 0 || c.Repaired > 0 || b.OtherWrites().Places > 0 {
		t.Errorf("the next verify found something again: %+v\n%s", c, sent.take())
	}
}

func (tc tampering) wantShown(t *testing.T, found []Difference) {
	t.Helper()
	var chains []string
	for _, d := range found {
		chains = append(chains, render.ChainID{Table: d.Table, Chain: d.Chain}.String())
	}
	if len(found) == 0 || tc.want != nil && !slices.Equal(chains, tc.want) {
		t.Errorf("differences in %v, want %v:\n%s", chains, tc.want, unified(t, found))
	}
}

func tamperings(svc, sep, other string, f netfilter.Family) []tampering {
	elsewhere := "10.9.9.9:99"
	if f == netfilter.IPv6 {
		elsewhere = "[fd09::9]:99"
	}
	nat := func(chains ...string) []string {
		var all []string
		for _, c := range chains {
			all = append(all, "nat/"+c)
		}
		slices.Sort(all)
		return all
	}
	return []tampering{
		{name: "a rule of a Service deleted", do: "$N -D " + svc + " 2", want: nat(svc), removed: true},
		{name: "a rule of an endpoint altered", do: "$N -R " + sep + " 2 -p tcp -j DNAT --to-destination " + elsewhere, want: nat(sep)},
		{name: "rules in another order", do: "$N -D " + sep + " 1; $N -A " + sep + " -j KUBE-MARK-MASQ", want: nat(sep)},
		{name: "a rule added that we know", do: "$N -A " + svc + " -j RETURN", want: nat(svc)},
		{name: "a rule added that we do not know", do: "$N -I " + svc + " -m length --length 100 -j RETURN", want: nat(svc)},
		{name: "a chain flushed", do: "$N -F " + svc, want: nat(svc), removed: true},
		{name: "a chain removed", do: "$N -F " + svc + "; $N -D KUBE-SERVICES 2; $N -X " + svc, want: nat(svc, netfilter.ChainServices), removed: true},
		{name: "an entry deleted", do: "$N -D KUBE-SERVICES 1", want: nat(netfilter.ChainServices), removed: true},
		{name: "an entry twice", do: "$N -A KUBE-SERVICES -j RETURN; $N -I KUBE-SERVICES -j RETURN", want: nat(netfilter.ChainServices)},
		{name: "an entry added that we do not know", do: "$N -I KUBE-SERVICES -m length --length 100 -j RETURN", want: nat(netfilter.ChainServices)},
		{name: "the NodePort jump not last", do: "$N -I KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS; " +
			"$N -D KUBE-SERVICES $($N -S KUBE-SERVICES | tail -n +2 | wc -l)", want: nat(netfilter.ChainServices), removed: f == netfilter.IPv4},
		{name: "a mark rule altered", do: "$N -R KUBE-MARK-MASQ 1 -j MARK --set-xmark 0x8/0x8", want: nat(netfilter.ChainMarkMasq), removed: true},
		{name: "postrouting flushed", do: "$N -F KUBE-POSTROUTING", want: nat(netfilter.ChainPostrouting), removed: true},
		{name: "a refusal deleted", do: "$T -F KUBE-SERVICES", want: []string{"filter/KUBE-SERVICES"}, removed: true},
		{name: "forwarding deleted", do: "$T -D KUBE-FORWARD 2", want: []string{"filter/KUBE-FORWARD"}, removed: true},
		{name: "a chain of ours that nobody wants", do: "$N -N KUBE-SVC-STALE; $N -A KUBE-SVC-STALE -j " + other + "; $N -I KUBE-SERVICES -p udp -j KUBE-SVC-STALE",
			want: nat("KUBE-SVC-STALE", netfilter.ChainServices)},
		{name: "a stale chain that somebody else uses", do: "$N -N KUBE-SEP-USED; $N -A KUBE-SEP-USED -j RETURN; $N -N THEIRS; $N -A THEIRS -j KUBE-SEP-USED",
			want: nat("KUBE-SEP-USED"), undo: "$N -F THEIRS; $N -X THEIRS; $N -X KUBE-SEP-USED"},
		{name: "a jump deleted", do: "$N -D PREROUTING 1", removed: true},
		{name: "a jump in the middle deleted", do: "$T -D FORWARD 2", removed: true},
		{name: "a jump deleted below a rule of others", do: "$T -I INPUT -j ACCEPT -p icmp; " +
			"$T -D INPUT $($T -S INPUT | grep -n KUBE-EXTERNAL | cut -d: -f1 | awk '{print $1-1}')", removed: true},
		{name: "the guard's rule deleted", do: "$T -F KUBE-FIREWALL", ip4: true, removed: true},
		{name: "the guard's jump deleted", do: "$T -D OUTPUT -j KUBE-FIREWALL", ip4: true, removed: true},
	}
}

// A flushed table comes back. So does a chain that another process emptied while we wrote something
// else.
func TestFlushedTable(t *testing.T) {
	list := append(services(4, 2), nodePortService(4))
	rs := ruleset(list)
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, sent := newBackend(t, v, f)
		mustSync(t, b, rs, true)
		tool := toolName(v, f, "")
		for _, flush := range []string{
			tool + " -t nat -F",
			tool + " -t nat -F; " + tool + " -t nat -X",
			tool + " -F; " + tool + " -X",
		} {
			run(t, flush)
			sent.take()
			c := mustSync(t, b, rs, true)
			if c.Repaired == 0 {
				t.Errorf("after %s: %+v", flush, c)
			}
			for _, chain := range touched(sent.take()) {
				if table, _, _ := strings.Cut(chain, "/"); strings.Contains(flush, "-t nat") != (table == "nat") {
					t.Errorf("after %s chain %s was written", flush, chain)
				}
			}
			wantEqual(t, t, b, rs)
		}
	})
}

// nodePortService is service i with a NodePort, affinity and external policy Local.
func nodePortService(i int) *rules.Service {
	s := *service(i, 2, 0)
	for f, any := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		s.Frontends = append(s.Frontends, rules.Frontend{
			Addr: netip.AddrPortFrom(any, uint16(30000+i)), Kind: rules.NodePort,
			Routes:  []rules.Route{{From: rules.Node, Set: f, Masquerade: rules.Always}, {From: rules.Any, Set: f}},
			Verdict: rules.Drop,
		})
	}
	return &s
}

// After a failed Sync other processes are not blamed: a difference may be our own failed repair.
func TestOtherWritesAfterAFailure(t *testing.T) {
	rs := ruleset(services(2, 2))
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		mustSync(t, b, rs, true)
		tool := toolName(v, f, "") + " -w 5 -t nat "
		run(t, tool+"-N KUBE-SVC-THEIRS; "+tool+"-A KUBE-SVC-THEIRS -j RETURN")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := b.Sync(ended, rs, true); err == nil || b.OtherWrites().Places > 0 {
			t.Fatalf("a Sync that was cut off: %v, written by others: %+v", err, b.OtherWrites())
		}
		b.syncers[0].last = nil // as after a restore that failed
		mustSync(t, b, rs, true)
		if others := b.OtherWrites(); others.Places > 0 {
			t.Errorf("written by others: %+v", others)
		}
		run(t, tool+"-N KUBE-SVC-THEIRS; "+tool+"-A KUBE-SVC-THEIRS -j RETURN")
		mustSync(t, b, rs, true)
		if others := b.OtherWrites(); others.Places != 1 || others.First[0] != f.String()+" nat/KUBE-SVC-THEIRS" {
			t.Errorf("written by others: %+v, want the chain", others)
		}
	})
}
