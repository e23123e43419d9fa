package iptables

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kubeProxySets creates the sets that kube-proxy's IPVS mode has beside ours.
func kubeProxySets(t *testing.T) {
	t.Helper()
	mustBePrivate(t)
	for _, name := range netfilter.SetsOfKubeProxy() {
		for f, number := range map[netfilter.Family]uint8{netfilter.IPv4: unix.AF_INET, netfilter.IPv6: unix.AF_INET6} {
			kind, o := "hash:ip,port", netlink.IpsetCreateOptions{Family: number}
			switch {
			case strings.HasSuffix(name, "-CIDR"):
				kind = "hash:ip,port,net"
			case strings.HasSuffix(name, "-SOURCE-IP"):
				kind = "hash:ip,port,ip"
			case strings.Contains(name, "NODE-PORT") && !strings.HasSuffix(name, "-HASH"):
				kind, o = "bitmap:port", netlink.IpsetCreateOptions{PortTo: 65535}
			}
			if err := netlink.IpsetCreate(netfilter.SetName(f, name), kind, o); err != nil {
				t.Fatalf("making set %s: %v", netfilter.SetName(f, name), err)
			}
		}
	}
}

// kubeProxyIPVS creates what kube-proxy's IPVS mode has in iptables, and its sets.
func kubeProxyIPVS(t *testing.T, v netfilter.Variant, f netfilter.Family) {
	t.Helper()
	makeSets(t)
	kubeProxySets(t)
	text := kubeProxyRules(t, "kube-proxy-ipvs.rules")
	if f == netfilter.IPv6 {
		words := []string{"127.0.0.0/8", "::1/128", "10.0.0.0/8", "fd00::/8", "198.51.100.1", "2001:db8::1"}
		for _, name := range slices.Concat(netfilter.SetsOfKubeProxy(), slices.Collect(maps.Keys(netfilter.SetTypes()))) {
			words = append(words, "--match-set "+name+" ", "--match-set "+netfilter.SetName(f, name)+" ")
		}
		text = strings.NewReplacer(words...).Replace(text)
	}
	if withoutIPVSMatch() {
		text = strings.ReplaceAll(text, "-m ipvs --vaddr ", "-d ")
		text = strings.ReplaceAll(text, "--vproto 6 --vport 80", "-p tcp --dport 80")
	}
	install(t, v, f, text, kubeProxyIPVSJumps)
}

const kubeProxyIPVSJumps = `-t nat -I OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-t nat -I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-t nat -I POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-t filter -I FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-t filter -I INPUT -m comment --comment "kubernetes health check rules" -j KUBE-NODE-PORT
-t filter -I INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-t filter -I FORWARD -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL
-t filter -I INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
-t filter -I OUTPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-OUT-FILTER
`

// After kube-proxy's IPVS mode, either mode of ours leaves the same state as on a clean machine,
// and cleaning up leaves nothing. Rules of other programs stay.
func TestTakeoverFromIPVS(t *testing.T) {
	list := append(services(3, 2), nodePortService(3), service(4, 0, 0))
	full := ruleset(list)
	full.NodePorts.Localhost = false // KUBE-FIREWALL belongs to the kubelet alone
	small := rulestest.Residual{}.Of(full)
	for _, mode := range []string{"iptables", "ipvs", "cleanup"} {
		t.Run(mode, func(t *testing.T) {
			eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
				tool := toolName(v, f, "") + " -w 5"
				run(t, strings.NewReplacer("$T", tool, "$N", tool+" -t nat", "$M", tool+" -t mangle").Replace(others))
				before := everything(t, v, f)
				kubeProxyIPVS(t, v, f)
				b, sent := newBackendOf(t, v, mode == "ipvs", f)
				switch mode {
				case "iptables":
					wantTakenOver(t, b, sent, full)
				case "ipvs":
					wantTakenOver(t, b, sent, small)
				}
				cleanup(t, b)
				if diff := cmp.Diff(before, everything(t, v, f)); diff != "" {
					t.Errorf("cleanup left or took (-before +after):\n%s", diff)
				}
				removeSets(t)
			})
		})
	}
}

func wantTakenOver(t *testing.T, b *Backend, sent *recorder, rs rules.Ruleset) {
	t.Helper()
	mustSync(t, b, rs, false)
	wantEqual(t, t, b, rs)
	wantAtOnce(t, sent)
	wantBuiltIn(t, b)
}

// wantAtOnce fails the test unless one restore removes the last of kube-proxy's jumps and chains:
// between two restores, packets would miss a verdict.
func wantAtOnce(t *testing.T, sent *recorder) {
	t.Helper()
	inputs := sent.take()
	for want, times := range map[string]int{
		"-D INPUT ": 3, "-D FORWARD ": 1, "-D OUTPUT ": 1, "-X KUBE-NODE-PORT\n": 2, "-X KUBE-IPVS-OUT-FILTER\n": 1, "-X KUBE-LOAD-BALANCER\n": 1,
	} {
		if n := strings.Count(inputs[len(inputs)-1], want); n != times {
			t.Errorf("%q is %d times in the last restore, want %d:\n%s", want, n, times, strings.Join(inputs, "\n"))
		}
	}
}

// wantBuiltIn fails the test unless the built-in chains have our jumps, each once and in order, and
// no other to a chain named as ours.
func wantBuiltIn(t *testing.T, b *Backend) {
	t.Helper()
	f := b.syncers[0].kernel.family
	s := saved(t, b.variant, f)
	tables := render.Fixed(rules.Ruleset{}, render.Options{}).Tables
	for _, table := range []netfilter.Table{netfilter.Filter, netfilter.NAT} {
		for _, want := range tables[table].Jumps {
			var got []netfilter.Rule
			for _, r := range s.Tables[table].Chain(want.Name).Rules {
				if strings.Contains(r.Text, "-j KUBE-") && r.Rule.Jump != netfilter.ChainFirewall {
					got = append(got, r.Rule)
				}
			}
			if !slices.EqualFunc(want.Rules, got, netfilter.Rule.Same) {
				t.Errorf("%s %s has\n%+v\nwant\n%+v", table, want.Name, got, want.Rules)
			}
		}
	}
}
