// This file is compiled into kube-proxy's package iptables while its unit tests run on gridproxy's
// code: it replaces the sync of rules.

package iptables

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	gridmetrics "gridproxy/cmd/gridproxy/metrics"
	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/proxy/metrics"
	utiliptables "k8s.io/kubernetes/pkg/util/iptables"
)

// gridproxyObjects are the objects that a test has handed over, by namespace and name. It is a
// field of Proxier.
type gridproxyObjects struct {
	services map[string]*v1.Service
	slices   map[string]*discovery.EndpointSlice
}

// OnServiceUpdate takes a Service for the next sync.
func (proxier *Proxier) OnServiceUpdate(oldService, service *v1.Service) {
	o := &proxier.gridproxy
	if o.services == nil {
		o.services = map[string]*v1.Service{}
	}
	if oldService != nil {
		delete(o.services, oldService.Namespace+"/"+oldService.Name)
	}
	if service != nil {
		o.services[service.Namespace+"/"+service.Name] = service
	}
	proxier.kubeProxyOnServiceUpdate(oldService, service)
}

func (proxier *Proxier) gridproxySlice(slice *discovery.EndpointSlice, there bool) {
	o := &proxier.gridproxy
	if o.slices == nil {
		o.slices = map[string]*discovery.EndpointSlice{}
	}
	if there {
		o.slices[slice.Namespace+"/"+slice.Name] = slice
	} else {
		delete(o.slices, slice.Namespace+"/"+slice.Name)
	}
}

// OnEndpointSliceAdd takes an EndpointSlice for the next sync.
func (proxier *Proxier) OnEndpointSliceAdd(slice *discovery.EndpointSlice) {
	proxier.gridproxySlice(slice, true)
	proxier.kubeProxyOnEndpointSliceAdd(slice)
}

// OnEndpointSliceUpdate takes an EndpointSlice for the next sync.
func (proxier *Proxier) OnEndpointSliceUpdate(old, slice *discovery.EndpointSlice) {
	proxier.gridproxySlice(slice, true)
	proxier.kubeProxyOnEndpointSliceUpdate(old, slice)
}

// OnEndpointSliceDelete removes an EndpointSlice before the next sync.
func (proxier *Proxier) OnEndpointSliceDelete(slice *discovery.EndpointSlice) {
	proxier.gridproxySlice(slice, false)
	proxier.kubeProxyOnEndpointSliceDelete(slice)
}

// syncProxyRules resolves, compiles and renders with gridproxy. The result is spelled as kube-proxy
// spells rules, because the tests compare texts.
func (proxier *Proxier) syncProxyRules() error {
	proxier.mu.Lock()
	defer proxier.mu.Unlock()
	if !proxier.isInitialized() {
		return nil
	}
	snapshot := proxier.gridproxySnapshot()
	view := topology.Resolve(snapshot, topology.Config{})
	ruleset := rules.Compile(view, proxier.gridproxyConfig())
	tables := render.Ruleset(ruleset, render.Options{
		Family: netfilter.Family(proxier.gridproxyFamily()), MasqueradeBit: 14, RandomFully: true,
		DropInvalid: !proxier.conntrackTCPLiberal,
		NFAcct:      proxier.nfAcctCounters[metrics.IPTablesCTStateInvalidDroppedNFAcctCounter],
	})
	proxier.iptablesData.Reset()
	for i, table := range tables.Tables {
		gridproxySpell(proxier.iptablesData, netfilter.Table(i), table, proxier.masqueradeMark)
	}
	if err := proxier.gridproxyWrite(tables); err != nil {
		panic(err)
	}
	proxier.gridproxyMetrics(syncer.Result{Snapshot: snapshot, View: view, Ruleset: ruleset}, tables)
	return nil
}

func (proxier *Proxier) gridproxyFamily() rules.Family {
	if proxier.ipFamily == v1.IPv6Protocol {
		return rules.IPv6
	}
	return rules.IPv4
}

func (proxier *Proxier) gridproxySnapshot() topology.Snapshot {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: proxier.nodeName, Labels: proxier.topologyLabels}}
	node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: proxier.nodeIP.String()}}
	s := topology.Snapshot{
		Node: proxier.nodeName, Self: node, Nodes: map[string]labels.Set{proxier.nodeName: proxier.topologyLabels},
		Host: topology.Host{IPv4: true, IPv6: true},
	}
	addrs, _ := proxier.networkInterfacer.InterfaceAddrs()
	for _, a := range addrs {
		if ipNet, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(ipNet.IP); ok {
				s.Host.Addrs = append(s.Host.Addrs, addr.Unmap())
			}
		}
	}
	slices.SortFunc(s.Host.Addrs, netip.Addr.Compare)
	for _, name := range slices.Sorted(maps.Keys(proxier.gridproxy.services)) {
		s.Services = append(s.Services, proxier.gridproxy.services[name])
	}
	for _, name := range slices.Sorted(maps.Keys(proxier.gridproxy.slices)) {
		s.Slices = append(s.Slices, topology.NewSlice(proxier.gridproxy.slices[name]))
	}
	return s
}

func (proxier *Proxier) gridproxyConfig() rules.Config {
	c := rules.Config{MasqueradeAll: proxier.masqueradeAll, LocalhostNodePorts: proxier.localhostNodePorts}
	for text := range strings.FieldsSeq(strings.Trim(proxier.nodePortAddresses.String(), "[]")) {
		c.NodePortAddresses.Prefixes = append(c.NodePortAddresses.Prefixes, netip.MustParsePrefix(text))
	}
	if proxier.localDetector.IsImplemented() { // the tests detect by CIDR only: -s CIDR
		c.DetectLocal.ClusterCIDRs = []netip.Prefix{netip.MustParsePrefix(proxier.localDetector.IfLocal()[1])}
	}
	return c
}

// gridproxyWrite puts the rules and the jumps to them into the fake iptables, and deletes the
// chains of Services that are gone.
func (proxier *Proxier) gridproxyWrite(tables render.Tables) error {
	if err := proxier.iptables.RestoreAll(proxier.iptablesData.Bytes(), utiliptables.NoFlushTables, utiliptables.RestoreCounters); err != nil {
		return err
	}
	for i, table := range tables.Tables {
		name := utiliptables.Table(netfilter.Table(i).String())
		for _, chain := range table.Jumps {
			for _, r := range slices.Backward(chain.Rules) {
				args := strings.Fields(gridproxyRule(r, proxier.masqueradeMark))
				if _, err := proxier.iptables.EnsureRule(utiliptables.Prepend, name, utiliptables.Chain(chain.Name), args...); err != nil {
					return err
				}
			}
		}
		var saved bytes.Buffer
		if err := proxier.iptables.SaveInto(name, &saved); err != nil {
			return err
		}
		for line := range strings.Lines(saved.String()) {
			chain, declared := strings.CutPrefix(strings.Fields(line)[0], ":")
			ours := slices.ContainsFunc(table.Chains, func(c netfilter.Chain) bool { return c.Name == chain })
			if declared && !ours && netfilter.Naming(0).IsServiceChain(netfilter.Table(i), chain) {
				if err := proxier.iptables.DeleteChain(name, utiliptables.Chain(chain)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// gridproxyMetrics copies what gridproxy's metrics say of Services without local endpoints. How
// many rules there are is counted here: gridproxy's own metric counts in the kernel.
func (proxier *Proxier) gridproxyMetrics(r syncer.Result, tables render.Tables) {
	for i, table := range tables.Tables {
		n := 0
		for _, c := range table.Chains {
			n += len(c.Rules)
		}
		of := []string{netfilter.Table(i).String(), string(proxier.ipFamily)}
		metrics.IPTablesRulesTotal.WithLabelValues(of...).Set(float64(n))
		metrics.IPTablesRulesLastSync.WithLabelValues(of...).Set(float64(n))
	}
	registry := prometheus.NewRegistry()
	gridmetrics.New(registry, time.Now(), gridmetrics.Kernel{}).Synced(r)
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() != "gridproxy_sync_proxy_rules_no_local_endpoints_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			values := map[string]string{}
			for _, l := range m.GetLabel() {
				values[l.GetName()] = l.GetValue()
			}
			if values["ip_family"] == string(proxier.ipFamily) {
				metrics.SyncProxyRulesNoLocalEndpointsTotal.WithLabelValues(values["traffic_policy"], string(proxier.ipFamily)).Set(m.GetGauge().GetValue())
			}
		}
	}
}

// gridproxySpell writes a table as kube-proxy writes it for iptables-restore.
func gridproxySpell(b *bytes.Buffer, table netfilter.Table, t render.TableRules, mark string) {
	fmt.Fprintf(b, "*%s\n", table)
	for _, c := range t.Chains {
		fmt.Fprintf(b, ":%s - [0:0]\n", c.Name)
	}
	for _, c := range t.Chains {
		for _, r := range c.Rules {
			fmt.Fprintf(b, "-A %s %s\n", c.Name, gridproxyRule(r, mark))
		}
	}
	b.WriteString("COMMIT\n")
}

// gridproxyRule spells a rule with kube-proxy's options in kube-proxy's order. A match without a
// spelling here would be lost unseen, so it panics.
func gridproxyRule(r netfilter.Rule, mark string) string {
	var words []string
	add := func(is bool, more ...string) {
		if is {
			words = append(words, more...)
		}
	}
	comment := r.Comment
	if strings.Contains(comment, " ") {
		comment = `"` + comment + `"`
	}
	add(comment != "", "-m", "comment", "--comment", comment)
	add(r.SrcLocal, "-m", "addrtype", "--src-type", "LOCAL")
	add(r.DstLocal, "-m", "addrtype", "--dst-type", "LOCAL")
	add(r.Recent.Op == netfilter.RecentSet, "-m", "recent", "--name", r.Recent.Name, "--set")
	add(r.Proto != 0, "-m", r.Proto.String(), "-p", r.Proto.String())
	add(r.NotDst, "!")
	add(r.Dst.IsValid(), "-d", gridproxyPrefix(r.Dst))
	add(r.DstPort != 0, "--dport", fmt.Sprint(r.DstPort))
	add(r.NotSrc, "!")
	add(r.Src.IsValid(), "-s", gridproxyPrefix(r.Src))
	add(r.NotInInterface, "!")
	add(r.InInterface != "", "-i", r.InInterface)
	add(r.CTState != 0, "-m", "conntrack")
	add(r.NotCTState, "!")
	add(r.CTState != 0, "--ctstate", gridproxyStates(r.CTState))
	add(r.Mark != netfilter.Mark{}, "-m", "mark")
	add(r.NotMark, "!")
	add(r.Mark != netfilter.Mark{}, "--mark", mark+"/"+mark)
	add(r.Probability != 0, "-m", "statistic", "--mode", "random", "--probability", gridproxyProbability(r.Probability))
	add(r.Recent.Op == netfilter.RecentCheck, "-m", "recent", "--name", r.Recent.Name, "--rcheck", "--seconds", fmt.Sprint(r.Recent.Seconds))
	add(r.Recent.Reap, "--reap")
	add(r.NFAcct != "", "-m", "nfacct", "--nfacct-name", r.NFAcct)
	if r.MatchSet.Name != "" || r.IPVS {
		panic(fmt.Sprintf("no spelling for %+v", r))
	}
	return strings.Join(append(words, gridproxyTarget(r, mark)...), " ")
}

func gridproxyTarget(r netfilter.Rule, mark string) []string {
	switch r.Target {
	case netfilter.TargetNone:
		return nil
	case netfilter.TargetJump:
		return []string{"-j", r.Jump}
	case netfilter.TargetDNAT:
		return []string{"-j", "DNAT", "--to-destination", r.DNAT.String()}
	case netfilter.TargetMasquerade:
		words := []string{"-j", "MASQUERADE"}
		if r.Random {
			words = append(words, "--random-fully")
		}
		return words
	case netfilter.TargetMark:
		if r.Set.Mask != 0 && r.Set.Mask == r.Set.Value {
			return []string{"-j", "MARK", "--or-mark", mark}
		}
		return []string{"-j", "MARK", "--xor-mark", mark}
	default:
		return []string{"-j", map[netfilter.Target]string{
			netfilter.TargetAccept: "ACCEPT", netfilter.TargetDrop: "DROP", netfilter.TargetReject: "REJECT", netfilter.TargetReturn: "RETURN",
		}[r.Target]}
	}
}

// gridproxyPrefix is a single address, or a prefix.
func gridproxyPrefix(p netip.Prefix) string {
	if p.IsValid() && p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

func gridproxyStates(s netfilter.CTState) string {
	var names []string
	for _, state := range []struct {
		bit  netfilter.CTState
		name string
	}{
		{netfilter.CTInvalid, "INVALID"}, {netfilter.CTNew, "NEW"}, {netfilter.CTRelated, "RELATED"},
		{netfilter.CTEstablished, "ESTABLISHED"}, {netfilter.CTDNAT, "DNAT"},
	} {
		if s&state.bit != 0 {
			names = append(names, state.name)
		}
	}
	return strings.Join(names, ",")
}

// gridproxyProbability is 1/n as kube-proxy writes it, for the value that the kernel holds of it.
func gridproxyProbability(p uint32) string {
	n := int((float64(1<<31) / float64(p)) + 0.5)
	if netfilter.Probability(n) != p {
		panic(fmt.Sprintf("%d/2^31 is not 1/%d", p, n))
	}
	return fmt.Sprintf("%0.10f", 1/float64(n))
}
