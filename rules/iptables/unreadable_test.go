package iptables

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// eachNFT runs a test for both families of iptables-nft, each in a namespace of its own.
func eachNFT(t *testing.T, run func(t *testing.T, f netfilter.Family)) {
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		t.Run(f.String(), func(t *testing.T) {
			private(t)
			run(t, f)
		})
	}
}

// addNativeRule adds a rule that iptables-nft does not print; the result removes it.
func addNativeRule(t *testing.T, f netfilter.Family, table, chain string) (remove func()) {
	t.Helper()
	at := nftTable(f, table) + " " + chain
	handle := strings.TrimSpace(run(t, "nft -e -a add rule "+at+` oifname "eth0" ct state new accept | sed -n 's/.*# handle //p'`))
	return func() { run(t, "nft delete rule "+at+" handle "+handle) }
}

func nftTable(f netfilter.Family, table string) string {
	return map[netfilter.Family]string{netfilter.IPv4: "ip ", netfilter.IPv6: "ip6 "}[f] + table
}

// jumpCount is the number of jumps to our chains in a table's built-in chains, as the kernel lists
// them.
func jumpCount(t *testing.T, f netfilter.Family, table string) int {
	t.Helper()
	n := 0
	for _, chain := range netfilter.BuiltInChains() {
		n += strings.Count(run(t, "nft list chain "+nftTable(f, table)+" "+chain+" 2>/dev/null || true"), "jump KUBE-")
	}
	return n
}

// TestNativeRuleIsNoEmptyTable: one native rule in table nat keeps iptables-nft-save from printing
// that table. No jump is inserted again, changes are still written, and one error says which table,
// which rule, and what to do.
func TestNativeRuleIsNoEmptyTable(t *testing.T) {
	eachNFT(t, func(t *testing.T, f netfilter.Family) {
		b, _ := newBackend(t, netfilter.VariantNFT, f)
		var log strings.Builder
		b.syncers[0].log = slog.New(slog.NewTextHandler(&log, nil))
		mustSync(t, b, ruleset(services(3, 2)), true)
		before := jumpCount(t, f, "nat")
		remove := addNativeRule(t, f, "nat", "POSTROUTING")

		for n := 4; n < 8; n++ {
			c := mustSync(t, b, ruleset(services(n, 2)), true)
			if c.Verified || c.Repaired > 0 || c.Chains == 0 {
				t.Errorf("with a table that is not printed: %+v, want the change written and nothing called verified", c)
			}
			run(t, "nft list chain "+nftTable(f, "nat")+" "+clusterChain(service(n-1, 2, 0)))
		}
		if after := jumpCount(t, f, "nat"); after != before || before == 0 {
			t.Errorf("the jumps in nat went from %d to %d", before, after)
		}
		if strings.Contains(log.String(), "repaired rules that another process changed") || strings.Count(log.String(), "level=ERROR") != 1 {
			t.Errorf("want one error, and nothing about a repair:\n%s", log.String())
		}
		for _, want := range []string{"table nat of " + f.String(), "chain POSTROUTING", "nft add table " + nftFamily(f) + " NAME",
			"nft delete rule " + nftTable(f, "nat") + " POSTROUTING handle "} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, log.String())
			}
		}

		remove()
		if c := mustSync(t, b, ruleset(services(7, 2)), true); !c.Verified || c.Repaired > 0 {
			t.Errorf("after the native rule has gone: %+v", c)
		}
		if !strings.Contains(log.String(), "can be read back again") {
			t.Errorf("the end of the trouble is not logged:\n%s", log.String())
		}
		wantEqual(t, t, b, ruleset(services(7, 2)))
	})
}

// TestNothingIsWrittenOverAnUnreadableTable: a process without last state writes nothing while it
// cannot read, and everything once it can. Other tables may be unreadable.
func TestNothingIsWrittenOverAnUnreadableTable(t *testing.T) {
	eachNFT(t, func(t *testing.T, f netfilter.Family) {
		for _, table := range []string{"filter", "nat"} {
			first, _ := newBackend(t, netfilter.VariantNFT, f)
			mustSync(t, first, ruleset(services(2, 2)), true)
			run(t, "nft add chain "+nftTable(f, table)+" theirs")
			b, sent := newBackend(t, netfilter.VariantNFT, f)
			remove := addNativeRule(t, f, table, "theirs")
			for range 2 {
				_, err := trySync(t, b, ruleset(services(3, 2)), false)
				if err == nil || !strings.Contains(err.Error(), "table "+table) || !strings.Contains(err.Error(), "chain theirs") {
					t.Errorf("error %v, want one that names table %s and chain theirs", err, table)
				}
			}
			if inputs := sent.take(); len(inputs) > 0 {
				t.Errorf("written over what could not be read:\n%s", inputs)
			}
			remove()
			for _, others := range []string{"raw", "mangle"} {
				run(t, "nft add table "+nftTable(f, others)+"; nft add chain "+nftTable(f, others)+" theirs")
				addNativeRule(t, f, others, "theirs")
			}
			mustSync(t, b, ruleset(services(3, 2)), false)
			run(t, "nft delete table "+nftTable(f, "mangle")) // wantEqual reads it too
			wantEqual(t, t, b, ruleset(services(3, 2)))
		}
	})
}

// TestStartNamesTheNativeRule: the error names the native rule that keeps a family from being
// opened.
func TestStartNamesTheNativeRule(t *testing.T) {
	eachNFT(t, func(t *testing.T, f netfilter.Family) {
		b, _ := newBackend(t, netfilter.VariantNFT, f)
		mustSync(t, b, ruleset(services(1, 1)), true)
		addNativeRule(t, f, "nat", "POSTROUTING")
		var log strings.Builder
		c := Config{Variant: netfilter.VariantNFT, Families: []netfilter.Family{f}, MasqueradeBit: 14, Log: slog.New(slog.NewTextHandler(&log, nil))}
		again, err := New(t.Context(), c)
		if err == nil { // a family that cannot be opened may be retried at each sync
			_, err = trySync(t, again, ruleset(services(1, 1)), true)
		}
		if err == nil || !strings.Contains(err.Error(), "of chain POSTROUTING") || !strings.Contains(err.Error(), "nft delete rule") {
			t.Errorf("error %v, want one that names the rule and the remedy", err)
		}
	})
}

// TestRefusedOverAnUnreadableTable: a change that the kernel refuses while it cannot be read back
// is an error until it can. What was written last is then unknown, so nothing counts as equal to
// it.
func TestRefusedOverAnUnreadableTable(t *testing.T) {
	eachNFT(t, func(t *testing.T, f netfilter.Family) {
		b, _ := newBackend(t, netfilter.VariantNFT, f)
		before := ruleset(services(3, 2))
		mustSync(t, b, before, true)
		remove := addNativeRule(t, f, "nat", "POSTROUTING")
		run(t, "nft flush chain "+nftTable(f, "nat")+" KUBE-SERVICES") // so its entries cannot be deleted one by one
		for _, rs := range []rules.Ruleset{ruleset(services(2, 2)), before} {
			if _, err := trySync(t, b, rs, false); err == nil || !strings.Contains(err.Error(), "chain POSTROUTING") {
				t.Errorf("error %v, want one that names the chain of the native rule", err)
			}
		}
		remove()
		mustSync(t, b, before, false)
		wantEqual(t, t, b, before)
	})
}

// TestLocalDNSOverAnUnreadableTable: the chains of local DNS come and go only together with the
// jumps to them, which wait until a table can be read. All other changes are written.
func TestLocalDNSOverAnUnreadableTable(t *testing.T) {
	eachNFT(t, func(t *testing.T, f netfilter.Family) {
		run(t, "ipset create KUBE-LOCAL-DNS hash:ip,port family inet timeout 30; ipset create KUBE-6-LOCAL-DNS hash:ip,port family inet6 timeout 30")
		b, _ := newBackend(t, netfilter.VariantNFT, f)
		of := func(services []*rules.Service, local bool) rules.Ruleset {
			rs := ruleset(services)
			if local {
				rs.LocalDNS = rules.LocalDNS{Addrs: []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")}}
			}
			return rs
		}
		for i, local := range []bool{true, false} {
			mustSync(t, b, of(services(2, 2), !local), true)
			run(t, "nft add chain "+nftTable(f, "nat")+" theirs")
			remove := addNativeRule(t, f, "nat", "theirs")
			mustSync(t, b, of(services(3, 2), local), true)
			if got := strings.Contains(run(t, "nft list table "+nftTable(f, "nat")), "chain KUBE-LOCAL-DNS"); got == local {
				t.Errorf("turn %d: the chain is there: %t", i, got)
			}
			run(t, "nft list chain "+nftTable(f, "nat")+" "+clusterChain(service(2, 2, 0)))
			remove()
			mustSync(t, b, of(services(3, 2), local), true)
			wantEqual(t, t, b, of(services(3, 2), local))
		}
	})
}

// TestLocalhostNodePortsOverAnUnreadableTable: the guard of NodePorts on loopback addresses cannot
// be created while a table cannot be read. The run reports it, so that these addresses are not
// routed. All other changes are written. An existing guard stays after these NodePorts are switched
// off.
func TestLocalhostNodePortsOverAnUnreadableTable(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	without := ruleset(services(2, 2))
	without.NodePorts.Localhost = false
	mustSync(t, b, without, true)
	remove := addNativeRule(t, netfilter.IPv4, "nat", "POSTROUTING")
	for n := 3; n < 5; n++ {
		local := ruleset(services(n, 2))
		local.NodePorts.Localhost = true
		for _, verify := range []bool{true, false} {
			c := mustSync(t, b, local, verify)
			if why := fmt.Sprint(c.Unguarded); !strings.Contains(why, "loopback") || !strings.Contains(why, "chain POSTROUTING") {
				t.Errorf("%s, want the loopback addresses named, and the chain of the native rule", why)
			}
		}
		run(t, "nft list chain ip nat "+clusterChain(service(n-1, 2, 0)))
	}
	remove()
	local := ruleset(services(4, 2))
	local.NodePorts.Localhost = true
	if c := mustSync(t, b, local, true); c.Unguarded != nil {
		t.Error(c.Unguarded)
	}
	wantEqual(t, t, b, local)

	remove = addNativeRule(t, netfilter.IPv4, "nat", "POSTROUTING")
	if c := mustSync(t, b, without, true); c.Unguarded != nil {
		t.Error(c.Unguarded)
	}
	run(t, "nft list chain ip filter KUBE-FIREWALL")
	remove()
	mustSync(t, b, without, true)
	wantEqual(t, t, b, without)
}

// TestEmptyOutputIsBelievedOnlyWithoutTheTable: if nothing is printed, the kernel is asked whether
// the tables exist. No real tool is known to print nothing of a table that exists, so a fake
// stands in.
func TestEmptyOutputIsBelievedOnlyWithoutTheTable(t *testing.T) {
	silent := program(t, t.TempDir(), "silent", "exit 0")
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		s, err := NewShadow(t.Context(), Config{Variant: v, Families: []netfilter.Family{f}, MasqueradeBit: 14})
		if err != nil {
			t.Fatal(err)
		}
		real := s.readers[0].save.path
		s.readers[0].save.path = silent
		if c, err := s.Sync(t.Context(), ruleset(services(2, 2)), true); err != nil || !c.Verified {
			t.Errorf("a new network namespace, which has no tables: %+v, %v", c, err)
		}

		b, sent := newBackend(t, v, f)
		mustSync(t, b, ruleset(services(2, 2)), true)
		sent.take()
		_, err = s.Sync(t.Context(), ruleset(services(2, 2)), true)
		if err == nil || !strings.Contains(err.Error(), "table filter") || !strings.Contains(err.Error(), "table nat") {
			t.Errorf("a shadow takes silence for empty tables: %v", err)
		}
		s.readers[0].save.path = real
		if _, err := s.Sync(t.Context(), ruleset(services(2, 2)), true); err != nil || len(s.Differences()) > 0 {
			t.Errorf("a shadow that is not silent: %v", err)
		}

		k := b.syncers[0]
		k.last, k.mark, k.kernel.save.path = nil, watermark{}, silent
		if _, err := trySync(t, b, ruleset(services(2, 2)), true); err == nil || len(sent.take()) > 0 {
			t.Errorf("silence is taken for an empty kernel: %v", err)
		}
	})
}

// TestCleanupReadsBack: it is an error if something cannot be read or comes back. The other tables
// are cleaned all the same.
func TestCleanupReadsBack(t *testing.T) {
	eachNFT(t, func(t *testing.T, f netfilter.Family) {
		b, _ := newBackend(t, netfilter.VariantNFT, f)
		mustSync(t, b, ruleset(services(3, 2)), true)
		remove := addNativeRule(t, f, "nat", "POSTROUTING")
		err := b.Cleanup(t.Context())
		if err == nil {
			t.Fatal("chains were left, and cleaning up succeeded")
		}
		for _, want := range []string{"chains of ours are left, nat/KUBE-", "table nat", "chain POSTROUTING",
			"nft delete rule " + nftTable(f, "nat") + " POSTROUTING handle "} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not say %q", err, want)
			}
		}
		if text := run(t, toolName(netfilter.VariantNFT, f, "-save")+" -t filter"); strings.Contains(text, "KUBE-SERVICES") {
			t.Errorf("filter could be read, and was not cleaned:\n%s", text)
		}
		remove()
		cleanup(t, b)
		if text := run(t, "nft list table "+nftTable(f, "nat")); strings.Contains(text, "KUBE-") {
			t.Errorf("after the second cleaning:\n%s", text)
		}
		addNativeRule(t, f, "nat", "POSTROUTING")
		cleanup(t, b) // no chain has one of our names

		run(t, "nft flush chain "+nftTable(f, "nat")+" POSTROUTING")
		mustSync(t, b, ruleset(services(3, 2)), true)
		dir := t.TempDir() // a tool whose work is undone at once, as by a running kube-proxy
		program(t, dir, toolName(netfilter.VariantNFT, f, "-restore"), "exec cat")
		path := os.Getenv("PATH")
		t.Setenv("PATH", dir+":"+path)
		if err := b.Cleanup(t.Context()); err == nil || !strings.Contains(err.Error(), "filter/KUBE-") || !strings.Contains(err.Error(), "stop it first") {
			t.Errorf("everything came back, and cleaning up says: %v", err)
		}
		t.Setenv("PATH", path)
	})
}

// TestCleanupWithoutTools: a variant without installed tools may still hold rules of ours.
func TestCleanupWithoutTools(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		mustSync(t, b, ruleset(services(2, 1)), true)
		path := os.Getenv("PATH")
		linksTo(t, otherVariant(v), netfilter.IPv4)(netfilter.IPv6)
		linked := os.Getenv("PATH")
		err := b.Cleanup(t.Context())
		tools := toolName(v, f, "-save") + " and " + toolName(v, f, "-restore")
		if err == nil || !strings.Contains(err.Error(), tools) || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("rules of a variant without tools were left: %v", err)
		}
		t.Setenv("PATH", path)
		cleanup(t, b)
		if v == netfilter.VariantNFT {
			t.Setenv("PATH", linked)
			cleanup(t, b) // no chain has one of our names
			t.Setenv("PATH", path)
		}
	})
}

// TestDetectVariantSeesNativeTables: a native rule hides neither the kubelet's chains nor the rules
// that are to be taken over.
func TestDetectVariantSeesNativeTables(t *testing.T) {
	private(t)
	run(t, "iptables-legacy -w 5 -t nat -N KUBE-SERVICES; iptables-nft -t nat -N KUBE-SERVICES")
	addNativeRule(t, netfilter.IPv4, "nat", "KUBE-SERVICES")
	chain, err := ServiceRulesIn(t.Context(), netfilter.VariantNFT, netfilter.IPv4, netfilter.KubeNames)
	if err != nil || chain != "KUBE-SERVICES" {
		t.Errorf("chain %q, %v, want KUBE-SERVICES", chain, err)
	}
	run(t, "iptables-nft -t mangle -N KUBE-IPTABLES-HINT; iptables-nft -t mangle -N theirs; iptables-legacy -w 5 -t mangle -N KUBE-KUBELET-CANARY")
	addNativeRule(t, netfilter.IPv4, "mangle", "theirs")
	if v, err := DetectVariant(t.Context()); err != nil || v != netfilter.VariantNFT {
		t.Errorf("variant %q, %v, want nft, which has the kubelet's sign", v, err)
	}
}
