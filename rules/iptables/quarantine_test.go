package iptables

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/rules"
	"gridproxy/rules/iptables/refusal"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"

	"k8s.io/apimachinery/pkg/types"
)

// refusing puts programs in front of iptables-restore that refuse some rules. They are fakes;
// need.Refusal says why.
func refusing(t *testing.T) *need.Refusal {
	t.Helper()
	r, err := need.NewRefusal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", r.Path())
	return r
}

func refuse(t *testing.T, r *need.Refusal, texts ...string) {
	t.Helper()
	if err := r.Refuse(texts...); err != nil {
		t.Fatal(err)
	}
}

func calls(t *testing.T, r *need.Refusal) int {
	t.Helper()
	n, err := r.Calls()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// toEndpoints is the text of a rule by which a Service of this package chooses an endpoint.
func toEndpoints(s *rules.Service) string { return `"` + s.Name.String() + " -> " }

// with is list with another generation of some of its Services.
func with(list []*rules.Service, changed ...int) []*rules.Service {
	list = slices.Clone(list)
	for _, i := range changed {
		list[i] = service(i, 2, 1)
	}
	return list
}

// wantRejecting fails the test unless the kernel has no rule of a Service in nat, and a REJECT for
// each of its frontends in filter, as the Ruleset with it replaced renders.
func wantRejecting(t *testing.T, b *Backend, rs rules.Ruleset, refused ...int) {
	t.Helper()
	rs.Services = slices.Clone(rs.Services)
	for _, i := range refused {
		rs.Services[i] = render.Reject(rs.Services[i])
	}
	wantEqual(t, t, b, rs)
}

// However little a tool reports, the one refused Service is found among many with at most 20
// restores. The rules of all others are in force, and at rest nothing more happens.
func TestRefusedServiceIsFound(t *testing.T) {
	for _, report := range []need.RefusalReport{need.ReportExact, need.ReportNext, need.ReportCommit, need.ReportNone} {
		t.Run(string(report), func(t *testing.T) {
			for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
				t.Run(string(v), func(t *testing.T) {
					private(t)
					kernel := refusing(t)
					if err := kernel.Report(report); err != nil {
						t.Fatal(err)
					}
					b, _ := newBackend(t, v, netfilter.IPv4)
					before := services(60, 2)
					mustSync(t, b, ruleset(before), false)
					refuse(t, kernel, toEndpoints(before[23]))
					after := services(60, 2)
					for i := range after {
						after[i] = service(i, 2, 1)
					}
					calls(t, kernel)
					mustSync(t, b, ruleset(after), false)
					if n := calls(t, kernel); n > refusal.MaxRestores {
						t.Errorf("%d restores, want at most 20", n)
					}
					wantRejecting(t, b, ruleset(after), 23)
					list := b.Quarantine()
					if len(list) != 1 || list[0].Service != after[23].Name || list[0].Kept || list[0].Reason == "" || len(list[0].Reason) > refusal.MaxReason {
						t.Errorf("quarantined: %+v", list)
					}
					mustSync(t, b, ruleset(after), false)
					if n := calls(t, kernel); n > 0 {
						t.Errorf("%d restores although nothing changed", n)
					}
				})
			}
		})
	}
}

// A quarantined Service is tried at each verify, and when it changes. Nothing in force changes
// until the kernel accepts it.
func TestQuarantineEnds(t *testing.T) {
	for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		t.Run(string(v), func(t *testing.T) {
			private(t)
			kernel := refusing(t)
			b, sent := newBackend(t, v, netfilter.IPv4)
			list := services(5, 2)
			refuse(t, kernel, toEndpoints(list[1]), toEndpoints(list[3]))
			mustSync(t, b, ruleset(list), true)
			wantRejecting(t, b, ruleset(list), 1, 3)
			sent.take()
			mustSync(t, b, ruleset(list), true)
			if inputs := sent.take(); len(inputs) > 0 {
				t.Errorf("a verify that freed nothing wrote:\n%s", inputs)
			}
			wantRejecting(t, b, ruleset(list), 1, 3)

			refuse(t, kernel, toEndpoints(list[3]))
			mustSync(t, b, ruleset(list), true)
			wantRejecting(t, b, ruleset(list), 3)
			wantNoDifference(t, v, ruleset(list), list[3].Name.String())

			refuse(t, kernel)
			mustSync(t, b, ruleset(list), false)
			wantRejecting(t, b, ruleset(list), 3)
			list = with(list, 3)
			mustSync(t, b, ruleset(list), false)
			wantEqual(t, t, b, ruleset(list))
			if q := b.Quarantine(); len(q) > 0 {
				t.Errorf("quarantined: %+v", q)
			}

			refuse(t, kernel, toEndpoints(list[4]))
			list = with(list, 4)
			mustSync(t, b, ruleset(list), false)
			list = list[:4]
			mustSync(t, b, ruleset(list), true)
			if q := b.Quarantine(); len(q) > 0 {
				t.Errorf("quarantined after the Service is gone: %+v", q)
			}
			wantEqual(t, t, b, ruleset(list))
		})
	}
}

// TestQuarantineOutlastsChangesOfOthers: one quarantined Service that changes does not release
// another one, whose rules the kernel would refuse again.
func TestQuarantineOutlastsChangesOfOthers(t *testing.T) {
	private(t)
	kernel := refusing(t)
	b, sent := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	list := services(5, 2)
	refuse(t, kernel, toEndpoints(list[1]), toEndpoints(list[3]))
	mustSync(t, b, ruleset(list), true)
	sent.take()
	other := list[3].Name.String()
	list = with(list, 1)
	mustSync(t, b, ruleset(list), false)
	for _, input := range sent.take() {
		if strings.Contains(input, other) {
			t.Errorf("%s, which did not change, was written:\n%s", other, input)
		}
	}
	wantRejecting(t, b, ruleset(list), 1, 3)
}

// Many refused Services are found sync by sync.
func TestManyRefusedServices(t *testing.T) {
	private(t)
	kernel := refusing(t)
	if err := kernel.Report(need.ReportCommit); err != nil {
		t.Fatal(err)
	}
	b, _ := newBackend(t, netfilter.VariantLegacy, netfilter.IPv4)
	list := services(60, 1)
	bad := []int{2, 3, 17, 31, 44, 59}
	var texts []string
	for _, i := range bad {
		texts = append(texts, toEndpoints(list[i]))
	}
	refuse(t, kernel, texts...)
	for range 10 {
		calls(t, kernel)
		_, err := trySync(t, b, ruleset(list), true)
		if n := calls(t, kernel); n > refusal.MaxRestores {
			t.Errorf("%d restores in one sync", n)
		}
		if err == nil {
			break
		}
	}
	wantRejecting(t, b, ruleset(list), bad...)
}

// Without the API server nothing could be repaired: default/kubernetes keeps its last good chains,
// those of an earlier process too.
func TestKubernetesKeepsItsLastGoodChains(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		name := map[bool]string{false: "running", true: "restarted"}[restarted]
		t.Run(name, func(t *testing.T) {
			for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
				t.Run(string(v), func(t *testing.T) {
					private(t)
					kernel := refusing(t)
					b, _ := newBackend(t, v, netfilter.IPv4)
					kubernetes := func(generation int) *rules.Service {
						s := service(0, 2, generation)
						s.Name.NamespacedName = types.NamespacedName{Namespace: "default", Name: "kubernetes"}
						return s
					}
					good := []*rules.Service{kubernetes(0), service(1, 2, 0)}
					mustSync(t, b, ruleset(good), false)
					refuse(t, kernel, toEndpoints(good[0]))
					if restarted {
						b, _ = newBackend(t, v, netfilter.IPv4)
					}
					next := []*rules.Service{kubernetes(1), service(1, 2, 1)}
					mustSync(t, b, ruleset(next), false)
					wantEqual(t, t, b, ruleset([]*rules.Service{good[0], next[1]}))
					if q := b.Quarantine(); len(q) != 1 || !q[0].Kept {
						t.Errorf("quarantined: %+v", q)
					}
					refuse(t, kernel)
					mustSync(t, b, ruleset(next), true)
					wantEqual(t, t, b, ruleset(next))
				})
			}
		})
	}
}

// If even the REJECT of a Service is refused, nothing is written for it.
func TestRefusedRejectIsLeftOut(t *testing.T) {
	private(t)
	kernel := refusing(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	list := services(3, 2)
	mustSync(t, b, ruleset(list), false)
	refuse(t, kernel, toEndpoints(list[1]), `"`+list[1].Name.String()+render.CommentQuarantined)
	list = with(list, 0, 1, 2)
	mustSync(t, b, ruleset(list), false)
	want := ruleset([]*rules.Service{list[0], {Name: list[1].Name}, list[2]})
	wantEqual(t, t, b, want)
}

// A broken tool does not cause a quarantine.
func TestBrokenToolIsNoServicesFault(t *testing.T) {
	private(t)
	kernel := refusing(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	list := services(3, 2)
	mustSync(t, b, ruleset(list), false)
	refuse(t, kernel, "-A ")
	list = with(list, 1)
	if _, err := trySync(t, b, ruleset(list), false); err == nil {
		t.Fatal("no error although the kernel accepts no rule at all")
	}
	if q := b.Quarantine(); len(q) > 0 {
		t.Errorf("quarantined: %+v", q)
	}
	refuse(t, kernel)
	mustSync(t, b, ruleset(list), true)
	wantEqual(t, t, b, ruleset(list))
}

// wantNoDifference fails the test unless a Shadow finds no difference, except that it recognises
// one Service as quarantined.
func wantNoDifference(t *testing.T, v netfilter.Variant, rs rules.Ruleset, quarantined string) {
	t.Helper()
	mustBePrivate(t)
	config := Config{Families: []netfilter.Family{netfilter.IPv4}, Variant: v, MasqueradeBit: 14}
	s, err := NewShadow(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sync(t.Context(), rs, true); err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Differences() {
		t.Errorf("%s/%s differs:\n%s\ninstead of\n%s", d.Table, d.Chain, d.Kernel, d.Desired)
	}
	found, err := ReadEvidence(t.Context(), v, netfilter.KubeNames)
	if err != nil || len(found.Quarantined) != 1 || !found.Quarantined[quarantined] {
		t.Errorf("quarantined by the rules: %v, %v; want %s", found, err, quarantined)
	}
}

// Each sync removes its scratch chains, and those of a killed process.
func TestChainsOfAttemptsGo(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		for _, table := range []string{"nat", "filter"} {
			run(t, toolName(v, f, "")+" -t "+table+" -N "+netfilter.ChainScratch)
		}
		mustSync(t, b, ruleset(services(3, 2)), true)
		wantEqual(t, t, b, ruleset(services(3, 2)))
		if _, err := os.Stat("/proc/net/xt_recent/" + netfilter.ChainScratch); err == nil {
			t.Error("the list of the probe for xt_recent is still there")
		}
	})
}

// The kernel itself refuses any DNAT that is reachable from POSTROUTING: here because another
// process jumps there. Only the Service of that chain is quarantined. The jump then leads to a
// stale chain, so it is removed, and the next verify releases the Service.
func TestServiceThatIsRefusedInItsPlace(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		list := services(40, 2)
		mustSync(t, b, ruleset(list[:5]), false)
		chain := render.TrafficPolicyChain(netfilter.KubeNames, list[23].Name, rules.Cluster)
		iptables := toolName(v, f, "") + " -t nat "
		run(t, iptables+"-N "+chain)
		run(t, iptables+"-A POSTROUTING -j "+chain)
		mustSync(t, b, ruleset(list), true)
		if q := b.Quarantine(); len(q) != 1 || q[0].Service != list[23].Name {
			t.Fatalf("quarantined: %+v", q)
		}
		nat := saved(t, v, f).Tables[netfilter.NAT]
		for i, s := range list {
			c := nat.Chain(render.TrafficPolicyChain(netfilter.KubeNames, s.Name, rules.Cluster))
			if written := c != nil && len(c.Rules) > 0; written != (i != 23) {
				t.Errorf("the chain of %s is written: %t", s.Name, written)
			}
		}
		mustSync(t, b, ruleset(list), true)
		wantEqual(t, t, b, ruleset(list))
		if q := b.Quarantine(); len(q) > 0 {
			t.Errorf("quarantined after the jump is gone: %+v", q)
		}
	})
}
