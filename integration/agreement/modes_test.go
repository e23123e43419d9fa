package agreement

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
)

// spelling is how both modes are spelled where nothing depends on it.
func spelling() render.Options {
	return render.Options{MasqueradeBit: 14, RandomFully: true, DropInvalid: true}
}

func compareModes(c Cluster) (modeComparison, error) {
	m, err := spellModes(c, spelling())
	if err != nil {
		return modeComparison{}, err
	}
	return m.compare(), nil
}

// TestModesAgree: the first packet of every flow meets the same endpoints, verdict and masquerade
// in IPVS mode as in iptables mode, except for the deviations.
func TestModesAgree(t *testing.T) {
	seed, first, last := drawn(t, envClusters, defaultClusters)
	total := compareAllModes(t, seed, first, last)
	t.Logf("%d clusters, %d differences: %d packets walked in both modes", last-first, len(total.differences), total.walked)
	for _, kind := range slices.Sorted(maps.Keys(total.ends)) {
		t.Logf("  %8d times: %s", total.ends[kind], kind)
	}
	for _, kind := range deviations {
		t.Logf("  %8d times on purpose otherwise: %s", total.deviations[kind], kind)
	}
	if last-first < defaultClusters || t.Failed() {
		return
	}
	wantEnds(t, total.ends, 1000)
	for _, kind := range deviations {
		if total.deviations[kind] < 20 && kind != ownSource { // that one is for TestDeviations
			t.Errorf("only %d packets showed %q: the clusters drawn do not test it", total.deviations[kind], kind)
		}
	}
}

// compareAllModes compares Clusters first to last-1 of a seed. It gives up after a few
// findings.
func compareAllModes(t *testing.T, seed, first, last uint64) modeComparison {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex // guards total and found
		total   modeComparison
		found   int
		next    atomic.Uint64
	)
	next.Store(first)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for n := next.Add(1) - 1; n < last; n = next.Add(1) - 1 {
				c := Draw(seed, n)
				result, err := compareModes(c)
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d, cluster %d: %v", seed, n, err)
				}
				if total.add(result); len(result.differences) > 0 && found < 3 {
					found++
					reportModes(t, c, result)
				}
				stop := err != nil || found == 3
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	workers.Wait()
	return total
}

// reportModes fails the test with the smallest Cluster that still shows a difference.
func reportModes(t *testing.T, c Cluster, result modeComparison) {
	t.Helper()
	small := Shrink(c, func(c Cluster) bool {
		r, err := compareModes(c)
		return err == nil && len(r.differences) > 0
	})
	shown, err := compareModes(small)
	if err != nil || len(shown.differences) == 0 {
		t.Errorf("the smallest cluster does not repeat: %v\n%s", err, small.Manifests())
		return
	}
	t.Errorf("%d differences in one cluster (repeat with %s=%d %s=%d). The first, without what does not matter to it:\n%v\n%s",
		len(result.differences), envSeed, c.Seed, envNumber, c.Number, shown.differences[0], small.Manifests())
}

// TestModesDeliberateError: the comparison finds what may go wrong in IPVS mode.
func TestModesDeliberateError(t *testing.T) {
	for name, breaks := range map[string]func(*modes) error{
		"the virtual server has the endpoints of policy Cluster": func(m *modes) error {
			return m.spellIPVS(widened(m.ruleset), spelling())
		},
		"only one of the NodePort's addresses": func(m *modes) error {
			rs := m.ruleset
			rs.NodePorts.IPv4.Addrs = rs.NodePorts.IPv4.Addrs[:min(1, len(rs.NodePorts.IPv4.Addrs))]
			return m.spellIPVS(rs, spelling())
		},
		"loopback NodePorts without chains": func(m *modes) error {
			rs := m.ruleset
			rs.NodePorts.Localhost = false
			return m.spellIPVS(rs, spelling())
		},
		"the unit is not enforced": func(m *modes) error {
			opened := m.cluster
			opened.Flags.NodesWithoutUnit = "open"
			return m.spellIPVS(compile(opened, hostOf(opened), letOneIn), spelling())
		},
		"source ranges are forgotten": func(m *modes) error {
			return m.spellIPVS(reframed(m.ruleset, func(f *rules.Frontend) { f.Allow = nil }), spelling())
		},
		"a real server drains":                  func(m *modes) error { return drainOne(m) },
		"an address is not on the link":         func(m *modes) error { return oneLess(m.state.Addresses) },
		"KUBE-CLUSTER-IP is empty":              emptied(netfilter.SetClusterIP),
		"KUBE-EXTERNAL-IP is empty":             emptied(netfilter.SetExternalIP),
		"KUBE-EXTERNAL-IP-LOCAL is empty":       emptied(netfilter.SetExternalIPLocal),
		"KUBE-LOOP-BACK is empty":               emptied(netfilter.SetLoopBack),
		"KUBE-IPVS-IPS is empty":                emptied(netfilter.SetIPVSIPs),
		"KUBE-IPVS-CHAINS is empty":             emptied(netfilter.SetChains),
		"verdicts of cluster IPs are not asked": withoutRule(netfilter.Filter, "KUBE-IPVS-FILTER", "KUBE-SERVICES"),
		"the filter of live addresses is lost":  withoutRule(netfilter.Filter, "KUBE-EXTERNAL-SERVICES", "KUBE-IPVS-FILTER"),
		"chains come after IPVS":                withoutRule(netfilter.NAT, "KUBE-SERVICES", "KUBE-IPVS-CHAINS"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range uint64(defaultClusters) {
				m, err := spellModes(Draw(1, n), spelling())
				if err != nil {
					t.Fatal(err)
				}
				if err := breaks(m); err != nil {
					t.Fatal(err)
				}
				if result := m.compare(); len(result.differences) > 0 {
					t.Logf("found in cluster %d: %s", n, result.differences[0].What)
					return
				}
			}
			t.Errorf("%d clusters did not show it", defaultClusters)
		})
	}
}

// reframed is a Ruleset with another version of every Frontend.
func reframed(rs rules.Ruleset, change func(*rules.Frontend)) rules.Ruleset {
	all := make([]*rules.Service, len(rs.Services))
	for i, s := range rs.Services {
		s := *s
		s.Frontends = slices.Clone(s.Frontends)
		for j := range s.Frontends {
			s.Frontends[j].Routes = slices.Clone(s.Frontends[j].Routes)
			change(&s.Frontends[j])
		}
		all[i] = &s
	}
	rs.Services = all
	return rs
}

// widened sends everybody to where this node's own Pods may go.
func widened(rs rules.Ruleset) rules.Ruleset {
	return reframed(rs, func(f *rules.Frontend) {
		for i := range f.Routes {
			f.Routes[i].Set = f.Routes[0].Set
		}
	})
}

func drainOne(m *modes) error {
	for key, d := range m.state.Destinations {
		d.Weight = 0
		m.state.Destinations[key] = d
		break
	}
	return nil
}

func oneLess[K comparable, V any](all map[K]V) error {
	for key := range all {
		delete(all, key)
		break
	}
	return nil
}

// emptied flushes a set of both families.
func emptied(set string) func(*modes) error {
	return func(m *modes) error {
		maps.DeleteFunc(m.state.Entries, func(e ipvs.Entry, _ struct{}) bool {
			return e.Set == netfilter.SetName(netfilter.IPv4, set) || e.Set == netfilter.SetName(netfilter.IPv6, set)
		})
		return nil
	}
}

// withoutRule takes the jump from one chain to another out of the skeleton.
func withoutRule(table netfilter.Table, chain, to string) func(*modes) error {
	return func(m *modes) error {
		for family := range m.skeleton {
			c := m.skeleton[family].Table(table).Chain(chain)
			if c == nil {
				return fmt.Errorf("there is no chain %s", chain)
			}
			before := len(c.Rules)
			c.Rules = slices.DeleteFunc(c.Rules, func(r netfilter.SavedRule) bool { return r.Rule.Jump == to })
			if len(c.Rules) == before {
				return fmt.Errorf("no rule of %s jumps to %s", chain, to)
			}
		}
		return nil
	}
}
