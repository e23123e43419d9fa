package iptables

import (
	"strings"
	"testing"

	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
)

// others are rules of other programs: $T is the tool, $N the same for nat, $M for mangle.
const others = `
$T -N KUBE-FIREWALL; $T -A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP
$T -I INPUT -j KUBE-FIREWALL; $T -I OUTPUT -j KUBE-FIREWALL
$T -N KUBE-KUBELET-CANARY; $N -N KUBE-KUBELET-CANARY; $M -N KUBE-KUBELET-CANARY; $M -N KUBE-IPTABLES-HINT
$T -N THEIRS; $T -A THEIRS -m length --length 100:200 -m comment --comment "a \"quoted\" word" -j DROP
$T -A FORWARD -p icmp -j THEIRS; $T -A INPUT -p udp --dport 53 -j ACCEPT; $T -P FORWARD DROP
$N -A POSTROUTING -p tcp --dport 99 -j MASQUERADE
`

// Cleanup keeps the rules of other programs byte for byte, cleans every variant, and finds nothing
// the second time.
func TestCleanup(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		tool := toolName(v, f, "") + " -w 5"
		run(t, strings.NewReplacer("$T", tool, "$N", tool+" -t nat", "$M", tool+" -t mangle").Replace(others))
		before := everything(t, v, f)

		b, sent := newBackend(t, v, f)
		rs := ruleset(append(services(3, 2), nodePortService(3), service(4, 0, 0)))
		rs.NodePorts.Localhost = false // KUBE-FIREWALL belongs to the kubelet alone
		mustSync(t, b, rs, false)
		for _, table := range []string{"mangle", "nat", "filter"} {
			run(t, tool+" -t "+table+" -N "+netfilter.ChainProxyCanary)
		}
		if diff := cmp.Diff(before, everything(t, v, f)); diff == "" {
			t.Fatal("nothing was written")
		}
		sent.take()
		cleanup(t, b)
		if diff := cmp.Diff(before, everything(t, v, f)); diff != "" {
			t.Errorf("cleanup left or took (-before +after):\n%s", diff)
		}
		sent.take()
		cleanup(t, b)
		if inputs := sent.take(); len(inputs) > 0 {
			t.Errorf("cleaning again wrote:\n%s", strings.Join(inputs, "\n"))
		}
		if c := mustSync(t, b, rs, false); !c.Verified {
			t.Error("after a cleanup the next sync trusts what it wrote before")
		}
		wantEqual(t, t, b, rs)

		other, _ := newBackend(t, otherVariant(v), f) // finds the first one's rules
		cleanup(t, other)
		if diff := cmp.Diff(before, everything(t, v, f)); diff != "" {
			t.Errorf("cleanup of the other variant left or took (-before +after):\n%s", diff)
		}
	})
}

// With localhost NodePorts the guard that the kubelet relies on stays.
func TestCleanupKeepsTheGuard(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	run(t, "iptables-nft -N KUBE-FIREWALL; iptables-nft -A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP")
	mustSync(t, b, ruleset(services(2, 1)), false)
	cleanup(t, b)
	text := run(t, "iptables-nft-save -t filter")
	for _, want := range []string{
		"-A INPUT -j KUBE-FIREWALL\n", "-A OUTPUT -j KUBE-FIREWALL\n", "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP\n",
		`-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections"`,
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("want once %q in\n%s", want, text)
		}
	}
}

// A chain that a rule of another program leads to stays whole. Everything else goes.
func TestCleanupLeavesWhatOthersUse(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		mustSync(t, b, ruleset(services(2, 1)), false)
		tool := toolName(v, f, "") + " -w 5 -t nat"
		run(t, tool+" -N HOSTPORT; "+tool+" -A HOSTPORT -j KUBE-MARK-MASQ")
		cleanup(t, b)
		text := everything(t, v, f)
		stays := strings.Count(text, "-A KUBE-MARK-MASQ -j MARK") == 1
		if strings.Contains(text, "KUBE-SERVICES") || !stays || !strings.Contains(text, "-A HOSTPORT -j KUBE-MARK-MASQ") {
			t.Errorf("after cleanup:\n%s", text)
		}
	})
}

func cleanup(t *testing.T, b *Backend) {
	t.Helper()
	mustBePrivate(t)
	if err := b.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// everything is all tables of a variant, without timestamps and packet counts.
func everything(t *testing.T, v netfilter.Variant, f netfilter.Family) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(run(t, toolName(v, f, "-save")+" 2>/dev/null")) {
		if line[0] != '#' {
			b.WriteString(strings.Split(line, " [")[0] + "\n")
		}
	}
	return b.String()
}
