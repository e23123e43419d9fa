package iptables

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"pgregory.net/rapid"
)

// largePorts are the ports of one Service "large/NAME". Another generation has another endpoint in
// each.
func largePorts(name string, ports, endpoints, generation int) []*rules.Service {
	var list []*rules.Service
	for p := range ports {
		s := service(10_000+p, endpoints, generation)
		s.Name.Namespace, s.Name.Name, s.Name.Port = "large", name, fmt.Sprintf("p%05d", p)
		list = append(list, s)
	}
	return list
}

// smallChunks make 330 chains a large Service.
var smallChunks = chunks{large: 100, size: 100}

// sortedServices puts Services in the order of a Ruleset.
func sortedServices(lists ...[]*rules.Service) []*rules.Service {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b *rules.Service) int { return topology.CompareNames(a.Name, b.Name) })
	return all
}

// declaredBy are the chains of Services that an input of iptables-restore declares.
func declaredBy(input string) (names []string) {
	for line := range strings.Lines(input) {
		if name, is := strings.CutPrefix(line, ":"); is {
			name, _, _ = strings.Cut(name, " ")
			if netfilter.KubeNames.IsServiceChain(netfilter.NAT, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// wantBatches fails the test if a restore declares more chains of Services than createMax.
func wantBatches(t *testing.T, inputs []string) {
	t.Helper()
	for i, input := range inputs {
		if n := len(declaredBy(input)); n > createMax {
			t.Errorf("restore %d declares %d chains, want %d at most", i, n, createMax)
		}
	}
}

// TestLargeServiceDoesNotDelayOthers: other Services, and changes to them in the meantime, are
// written before the next chunk of a large Service. Each of its ports is entered after its chains
// exist.
func TestLargeServiceDoesNotDelayOthers(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, sent := newBackend(t, v, f)
		b.Pause()
		b.syncers[0].chunks = smallChunks
		large := largePorts("one", 30, 10, 0) // 330 chains
		small := services(5, 2)
		want := ruleset(sortedServices(small, large))

		c := mustSync(t, b, want, false)
		if c.Again == 0 || !c.Late {
			t.Fatalf("the first sync wrote all of a large Service: %+v", c)
		}
		wantOrder(t, sent.take(), small, large)
		wantEqual(t, t, b, b.syncers[0].last.Rules) // of each Service port all or nothing

		small = append(small, service(5, 2, 0)) // another tenant adds one in the meantime
		want = ruleset(sortedServices(small, large))
		syncs := 1
		for c.Again > 0 {
			if syncs++; syncs > 10 {
				t.Fatal("the large Service does not come to an end")
			}
			c = mustSync(t, b, want, false)
			if inputs := sent.take(); syncs == 2 {
				wantOrder(t, inputs, small[5:], large)
			}
			wantEqual(t, t, b, b.syncers[0].last.Rules)
		}
		if syncs < 3 {
			t.Errorf("it took %d syncs, want a piece in each of 3 at least", syncs)
		}
		wantEqual(t, t, b, want)
		wantCounts(t, t, b)
		if c := mustSync(t, b, want, true); c.Chains > 0 || c.Again > 0 {
			t.Errorf("when it is written a sync goes on: %+v", c)
		}
	})
}

// wantOrder fails the test unless these small Services are entered before any chain of a large one
// is declared.
func wantOrder(t *testing.T, inputs []string, small, large []*rules.Service) {
	t.Helper()
	of := map[string]bool{}
	for _, s := range large {
		of[clusterChain(s)] = true
	}
	entered := map[string]bool{}
	for _, input := range inputs {
		for line := range strings.Lines(input) {
			isEntry := strings.HasPrefix(line, "-A KUBE-SERVICES") || strings.HasPrefix(line, "-I KUBE-SERVICES")
			if _, chain, found := strings.Cut(line, " -j KUBE-SVC-"); found && isEntry {
				entered["KUBE-SVC-"+strings.TrimSpace(chain)] = true
			}
		}
		if !slices.ContainsFunc(declaredBy(input), func(name string) bool { return of[name] }) {
			continue
		}
		for _, s := range small {
			if !entered[clusterChain(s)] {
				t.Errorf("a large Service is written before %s is entered", s.Name)
			}
		}
		return
	}
	t.Error("nothing of the large Service is written")
}

// TestLargeServiceChanges: a change and the removal of a large Service also come in chunks after
// others. A daemon that starts halfway keeps what exists.
func TestLargeServiceChanges(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	b.Pause()
	b.syncers[0].chunks = smallChunks
	small := services(3, 2)
	whole := func(services ...[]*rules.Service) rules.Ruleset { return ruleset(sortedServices(services...)) }
	finish := func(b *Backend, want rules.Ruleset) (syncs int) {
		for syncs = 1; mustSync(t, b, want, syncs%2 == 0).Again > 0; syncs++ {
			wantEqual(t, t, b, b.syncers[0].last.Rules)
			if syncs > 10 {
				t.Fatal("it does not come to an end")
			}
		}
		wantEqual(t, t, b, want)
		return syncs
	}
	before, after := largePorts("one", 30, 10, 0), largePorts("one", 30, 10, 1)
	mustSync(t, b, whole(small, before), false) // a chunk of it

	restarted, sent2 := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	restarted.Pause()
	restarted.syncers[0].chunks = smallChunks
	mustSync(t, restarted, whole(small, before), false)
	if text := strings.Join(sent2.take(), ""); strings.Contains(text, "-X ") || strings.Contains(text, "-D ") {
		t.Error("a restarted daemon removed the ports that were there")
	}
	finish(restarted, whole(small, before))

	b = restarted
	small[0] = service(0, 2, 1)
	sent2.take()
	mustSync(t, b, whole(small, after), false)
	if names := declaredBy(sent2.take()[0]); !slices.Contains(names, clusterChain(small[0])) || slices.Contains(names, clusterChain(after[0])) {
		t.Errorf("the first restore is about chains %v, want those of %s alone", names, small[0].Name)
	}
	if n := finish(b, whole(small, after)); n < 2 {
		t.Errorf("the change took %d more syncs, want pieces", n)
	}
	if n := finish(b, whole(small)); n < 2 {
		t.Errorf("the end took %d syncs, want pieces", n)
	}
}

// TestAllAtOnceWithoutPause: beside virtual servers, a Sync returns when all chains exist.
func TestAllAtOnceWithoutPause(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	b.syncers[0].chunks = smallChunks
	want := ruleset(sortedServices(services(3, 2), largePorts("one", 30, 10, 0)))
	if c := mustSync(t, b, want, false); c.Again > 0 {
		t.Errorf("%+v, want all of it in one sync", c)
	}
	wantEqual(t, t, b, want)
}

// TestOnePortOfManyChains: one port with more endpoints than createMax is written in batches, and
// its entry last.
func TestOnePortOfManyChains(t *testing.T) {
	private(t)
	b, sent := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	want := ruleset(services(1, createMax+100))
	mustSync(t, b, want, false)
	inputs := sent.take()
	wantBatches(t, inputs)
	for i, input := range inputs {
		if enters := strings.Contains(input, " -j "+clusterChain(want.Services[0])); enters && i < len(inputs)-1 {
			t.Errorf("restore %d of %d enters the Service", i, len(inputs))
		}
	}
	wantEqual(t, t, b, want)
}

// TestTowardsEnds: from any state, chunks lead to the desired one. What is not large is written by
// the first chunk.
func TestTowardsEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) []*rules.Service {
			var list []*rules.Service
			for _, name := range []string{"a", "b", "c"} {
				list = append(list, largePorts(name, rapid.IntRange(0, 40).Draw(t, label+name), rapid.SampledFrom([]int{0, 1, 10, 300}).Draw(t, label+"endpoints"), 0)...)
			}
			return sortedServices(list, services(rapid.IntRange(0, 3).Draw(t, label+"small"), 1))
		}
		from, to := draw("from "), draw("to ")
		first, _, ended := smallChunks.towards(from, to, netfilter.IPv4, 0, nil)
		isSmall := func(s *rules.Service) bool { return s.Name.Namespace == "default" }
		if !slices.Equal(only(first, isSmall), only(to, isSmall)) {
			t.Fatal("small Services wait")
		}
		for steps, last := 0, first; ; steps++ {
			var next []*rules.Service
			var left int
			next, left, ended = smallChunks.towards(last, to, netfilter.IPv4, smallChunks.size, ended)
			if !slices.IsSortedFunc(next, func(a, b *rules.Service) int { return topology.CompareNames(a.Name, b.Name) }) {
				t.Fatal("a step is not sorted")
			}
			if left == 0 {
				if !slices.Equal(next, to) {
					t.Fatal("nothing is left, and it is not what is wanted")
				}
				return
			}
			if slices.Equal(next, last) || steps > 1_000 {
				t.Fatal("it does not come to an end")
			}
			last = next
		}
	})
}

// TestChangingPortsAreAllWritten: if the ports of a large Service change before each chunk, no port
// keeps stale endpoints.
func TestChangingPortsAreAllWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ports = 40
		isMany := rapid.SliceOfN(rapid.Bool(), ports, ports).Draw(t, "which have many endpoints")
		generation := func(n int) []*rules.Service {
			list, many := largePorts("one", ports, 5, n), largePorts("one", ports, 110, n)
			for i, is := range isMany {
				if is {
					list[i] = many[i]
				}
			}
			return list
		}
		last, written := generation(0), map[*rules.Service]bool{}
		unwritten := map[string]bool{}
		for _, s := range last {
			unwritten[s.Name.Port] = true
		}
		var ended endings
		for n := 1; len(unwritten) > 0; n++ {
			if n > ports {
				t.Fatalf("after %d pieces %d ports are as they were before the first", n, len(unwritten))
			}
			to := generation(n)
			last, _, ended = smallChunks.towards(last, to, netfilter.IPv4, smallChunks.size, ended)
			for i := range ports {
				if last[i] == to[i] && !written[last[i]] {
					written[last[i]] = true
					delete(unwritten, last[i].Name.Port)
				}
			}
		}
	})
}

func only(list []*rules.Service, is func(*rules.Service) bool) []*rules.Service {
	return slices.DeleteFunc(slices.Clone(list), func(s *rules.Service) bool { return !is(s) })
}
