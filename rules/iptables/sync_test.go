package iptables

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// The rule that counts connections to a NodePort on loopback ends when NodePorts no longer
// answer there. If it stayed, it would refer to its Service's chain, and the kernel would refuse
// to delete the chain.
func TestCountersEndWithLocalhost(t *testing.T) {
	eachVariant(t, func(t *testing.T, v netfilter.Variant) {
		b, sent := newBackend(t, v, netfilter.IPv4)
		both := ruleset([]*rules.Service{nodePortService(0), nodePortService(1)})
		mustSync(t, b, both, false)
		if inputs := sent.take(); !strings.Contains(strings.Join(inputs, ""), render.AcctLocalhostAccepted) {
			t.Skip("SKIPPED: this kernel has no objects that count (CONFIG_NETFILTER_NETLINK_ACCT)")
		}
		both.NodePorts.Localhost = false
		mustSync(t, b, both, false)
		wantEqual(t, t, b, both)
		sent.take()

		one := both
		one.Services = both.Services[:1]
		if c := mustSync(t, b, one, false); c.Repaired != 0 || len(sent.take()) != 1 {
			t.Errorf("the end of a Service was refused at first: %+v", c)
		}
		wantEqual(t, t, b, one)
	})
}

// Adding or removing a Service adds or deletes an entry: the chain that all Services share is not
// sent again. Many at once are, in batches where that is faster.
func TestSyncSendsOnlyWhatDiffers(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, sent := newBackend(t, v, f)
		list := services(20, 2)
		mustSync(t, b, ruleset(list), false)
		sent.take()

		more := append(slices.Clone(list), service(20, 2, 0))
		c := mustSync(t, b, ruleset(more), false)
		inputs := sent.take()
		if len(inputs) != 1 || strings.Contains(inputs[0], ":KUBE-SERVICES") || strings.Count(inputs[0], "-I KUBE-SERVICES") != 1 {
			t.Errorf("one Service more was written as:\n%s", inputs)
		}
		if !strings.Contains(inputs[0], ":"+clusterChain(more[20])+" ") || c.Chains != 4 || c.Rules != 8 || c.Repaired != 0 || c.Verified {
			t.Errorf("one Service more: %+v\n%s", c, inputs)
		}
		wantEqual(t, t, b, ruleset(more))

		list[3] = service(3, 2, 1) // another endpoint
		mustSync(t, b, ruleset(list), false)
		inputs = sent.take()
		if len(inputs) != 1 || strings.Count(inputs[0], "KUBE-SERVICES") != 1 || strings.Count(inputs[0], "-D KUBE-SERVICES") != 1 {
			t.Errorf("one Service less and another endpoint were written as:\n%s", inputs)
		}
		wantEqual(t, t, b, ruleset(list))

		mustSync(t, b, ruleset(slices.Clone(list)), false)
		if inputs := sent.take(); len(inputs) > 0 {
			t.Errorf("nothing to do was written as:\n%s", inputs)
		}
	})
}

// TestFewComments: where there are more endpoints than have comments, rules about one endpoint
// have none, and passing the number writes only what changes besides.
func TestFewComments(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, sent := newBackend(t, v, f)
		list := services(render.MaxCommented/2, 2)
		mustSync(t, b, ruleset(list), false)
		few := endpointComments(strings.Join(sent.take(), ""))
		if few != 6*len(list) {
			t.Errorf("%d rules about single endpoints have comments, want %d", few, 6*len(list))
		}
		more := append(slices.Clone(list), service(len(list), 1, 0))
		c := mustSync(t, b, ruleset(more), false)
		inputs := strings.Join(sent.take(), "")
		if n := endpointComments(inputs); n != 0 || c.Chains != 3 {
			t.Errorf("of %d endpoints the last was written as %d chains, %d rules with comments:\n%s", render.MaxCommented+1, c.Chains, n, inputs)
		}
		wantEqual(t, t, b, ruleset(more))
		if c := mustSync(t, b, ruleset(more), true); c.Chains+c.Repaired != 0 {
			t.Errorf("rules that lack comments are repaired: %+v", c)
		}
		last := more[len(more)-1]
		chain := render.EndpointChain(netfilter.KubeNames, last.Name, last.Sets[f].Endpoints[0])
		run(t, toolName(v, f, "")+" -w 5 -t nat -F "+chain)
		found := shadowed(t, v, f, ruleset(more))
		name := last.Name.Namespace + "/" + last.Name.Name
		if len(found) != 1 || !slices.Equal(found[0].Services(), []string{name}) {
			t.Errorf("an emptied chain of %s is not told as its own:\n%s", name, unified(t, found))
		}
		mustSync(t, b, ruleset(more), true)

		mustSync(t, b, ruleset(more[1:]), false)
		sent.take()
		mustSync(t, b, ruleset(more[1:]), true)
		if inputs := sent.take(); len(inputs) > 0 {
			t.Errorf("with few endpoints again, was written:\n%s", inputs)
		}
	})
}

// TestCommentsRenderNothingAgain: who makes the number of endpoints pass that limit again and again
// has no other Service rendered.
func TestCommentsRenderNothingAgain(t *testing.T) {
	rs := ruleset(services(render.MaxCommented, 1))
	last := render.Desired{Rules: rs, Options: render.Options{Names: netfilter.KubeNames}}
	want := last
	want.Options.FewComments = true
	parts := 0
	for range lastWritten(last).parts(want) {
		parts++
	}
	if parts != 1 {
		t.Errorf("%d parts are compared, want the shared one alone", parts)
	}
}

// endpointComments counts the rules to or in chains of endpoints that have a comment.
func endpointComments(input string) (n int) {
	for line := range strings.Lines(input) {
		if strings.HasPrefix(line, "-A") && strings.Contains(line, "KUBE-SEP-") && strings.Contains(line, "--comment") {
			n++
		}
	}
	return n
}

// TestManyAtOnce: the number of restores depends on the new chains, not on the Services. Many
// entries are not deleted one by one.
func TestManyAtOnce(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, sent := newBackend(t, v, f)
		mustSync(t, b, ruleset(services(1, 2)), false)
		sent.take()
		many := services(createMax*7/10, 2) // of three chains each, so that a restore ends within one
		mustSync(t, b, ruleset(many), false)
		pieces := map[netfilter.Variant]int{netfilter.VariantNFT: 3, netfilter.VariantLegacy: 1}
		inputs := sent.take()
		if len(inputs) != pieces[v] {
			t.Errorf("%d new Services took %d restores, want %d", len(many), len(inputs), pieces[v])
		}
		if v == netfilter.VariantNFT {
			wantBatches(t, inputs)
		}
		wantEqual(t, t, b, ruleset(many))
		mustSync(t, b, ruleset(many[:5]), false)
		if inputs := sent.take(); len(inputs) != 1 || !strings.Contains(inputs[0], ":KUBE-SERVICES") || strings.Contains(inputs[0], "-D ") {
			t.Errorf("deleting many entries one by one: %d restores", len(inputs))
		}
		wantEqual(t, t, b, ruleset(many[:5]))
	})
}

// A failed restore is an error of its family alone, and the next sync reads back.
func TestFailureIsReadBack(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT)
	mustSync(t, b, ruleset(services(3, 2)), false)
	k := b.syncers[0]
	path := k.kernel.restore.path
	k.kernel.restore.path = "/bin/false"
	_, err := trySync(t, b, ruleset(services(4, 2)), false)
	if err == nil || !strings.Contains(err.Error(), "IPv4") || strings.Contains(err.Error(), "IPv6") {
		t.Fatalf("error %v, want one of IPv4 alone", err)
	}
	ip6 := saved(t, netfilter.VariantNFT, netfilter.IPv6)
	if n := len(ip6.Table(netfilter.NAT).Chain(netfilter.ChainServices).Rules); n != 5 {
		t.Errorf("IPv6 has %d entries, want the 5 of the new state", n)
	}
	k.kernel.restore.path = path
	if k.last != nil {
		t.Error("after a failure it is known what the kernel holds")
	}
	mustSync(t, b, ruleset(services(4, 2)), true)
	wantEqual(t, t, b, ruleset(services(4, 2)))
}

// A cancelled sync may have written half: the next one reads back.
func TestCancelledIsReadBack(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT)
	mustSync(t, b, ruleset(services(3, 2)), false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Sync(ctx, ruleset(services(4, 2)), false); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	if c := mustSync(t, b, ruleset(services(4, 2)), false); !c.Verified {
		t.Error("after a cancelled sync the kernel was not read back")
	}
	wantEqual(t, t, b, ruleset(services(4, 2)))
}

// A change that the kernel refuses, because another process removed what it builds on, is repaired
// in the same sync.
func TestRefusedChange(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		list := services(5, 2)
		mustSync(t, b, ruleset(list), false)
		run(t, toolName(v, f, "")+" -t nat -F KUBE-SERVICES")
		c := mustSync(t, b, ruleset(list[:4]), false)
		if !c.Verified || c.Repaired != 0 {
			t.Errorf("%+v, want a read-back; KUBE-SERVICES had to change anyhow", c)
		}
		wantEqual(t, t, b, ruleset(list[:4]))
	})
}

// At rest no process is started. Writes of other processes are noticed.
func TestAtRest(t *testing.T) {
	private(t)
	log := spy(t)
	b, _ := newBackend(t, netfilter.VariantNFT)
	rs := ruleset(services(3, 2))
	mustSync(t, b, rs, true)
	started(t, log)
	for range 3 {
		if c := mustSync(t, b, rs, true); c.Verified || c.Chains > 0 {
			t.Errorf("at rest: %+v", c)
		}
	}
	if s := started(t, log); s != "" {
		t.Errorf("at rest these were started:\n%s", s)
	}
	for _, n := range []int{4, createMax + 50, 4} { // our own writes, of whatever size, start none either
		mustSync(t, b, ruleset(services(n, 2)), false)
		started(t, log)
		mustSync(t, b, ruleset(services(n, 2)), true)
		if s := started(t, log); s != "" {
			t.Errorf("after our own change to %d Services these were started:\n%s", n, s)
		}
	}
	cleanup(t, b)
	mustSync(t, b, ruleset(services(createMax+50, 2)), true) // in batches, from nothing
	started(t, log)
	mustSync(t, b, ruleset(services(createMax+50, 2)), true)
	if s := started(t, log); s != "" {
		t.Errorf("after a cold start in pieces these were started:\n%s", s)
	}
	mustSync(t, b, ruleset(services(4, 2)), true)
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		run(t, toolName(netfilter.VariantNFT, f, "")+" -t nat -N OTHER")
		if c := mustSync(t, b, ruleset(services(4, 2)), true); !c.Verified || c.Chains > 0 {
			t.Errorf("after a change by another process: %+v, want a read-back that finds nothing", c)
		}
	}
	started(t, log)
	mustSync(t, b, ruleset(services(4, 2)), true)
	if s := started(t, log); s != "" {
		t.Errorf("at rest again these were started:\n%s", s)
	}
}

// Another process that writes between our change and the verify is noticed.
func TestOthersBetween(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	mustSync(t, b, ruleset(services(3, 2)), true)
	run(t, "iptables-nft -t nat -F KUBE-MARK-MASQ")
	mustSync(t, b, ruleset(services(4, 2)), false)
	if c := mustSync(t, b, ruleset(services(4, 2)), true); c.Repaired != 1 {
		t.Errorf("%+v, want one chain repaired", c)
	}
	wantEqual(t, t, b, ruleset(services(4, 2)))
}

// spy puts programs that log their name before the iptables tools.
func spy(t *testing.T) (log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	for _, name := range toolNames() {
		path, err := findTool(name)
		if err != nil {
			t.Fatal(err)
		}
		program(t, dir, name, fmt.Sprintf("echo %s \"$@\" >>%s\nexec %s \"$@\"", name, log, path))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return log
}

// started is what spy logged since the last call.
func started(t *testing.T, log string) string {
	t.Helper()
	b, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(log); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
