package agreement

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"
	"gridproxy/topology"
)

// Comparison is what came out for one Cluster.
type Comparison struct {
	Differences []Difference
	// What was compared at all, both families together.
	Flows        int
	Ends         map[string]int // how often a walk could end how
	Rules        int            // of kube-proxy
	HealthChecks int            // addresses and ports asked
	Deviating    int            // rules that gridproxy has beside kube-proxy's, on purpose: refusedOutput
}

// Difference is one thing that the two proxies do not do alike.
type Difference struct {
	Kind                 Kind
	What                 string
	KubeProxy, Gridproxy string
}

// Kind is what a Difference was found by.
type Kind string

// The kinds of Difference, the gravest first.
const (
	Packet      Kind = "packet"       // a packet ends otherwise
	HealthCheck Kind = "health check" // a load balancer reads another answer
	Rules       Kind = "rules"        // the packets walked do not tell, but the rules are others
)

func (k Kind) gravity() int { return slices.Index([]Kind{Packet, HealthCheck, Rules}, k) }

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s\n  kube-proxy:\n%s  gridproxy:\n%s", d.Kind, d.What, indent(d.KubeProxy), indent(d.Gridproxy))
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    " + line)
	}
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\n")
	}
	return b.String()
}

// Compare runs a Cluster through both proxies, on a machine that has the node's
// addresses, and holds the results against each other.
func (m *Machines) Compare(c Cluster) (Comparison, error) {
	return m.compareWith(c, topology.Resolve)
}

// compareWith is Compare with another closure on gridproxy's side.
func (m *Machines) compareWith(c Cluster, resolve closureFunc) (Comparison, error) {
	var theirs, ours Result
	err := m.in(c.HostAddrs, func() (err error) {
		if theirs, err = kubeProxy(c, Prune(c)); err != nil {
			return err
		}
		ours, err = gridProxy(c, resolve)
		return err
	})
	if err != nil {
		return Comparison{}, err
	}
	result := Comparison{Ends: map[string]int{}}
	for family := range theirs.Text {
		if err := result.compareFamily(c, family, theirs, ours); err != nil {
			return Comparison{}, err
		}
	}
	slices.SortStableFunc(result.Differences, func(a, b Difference) int { return a.Kind.gravity() - b.Kind.gravity() })
	return result, nil
}

func (r *Comparison) compareFamily(c Cluster, family int, theirs, ours Result) error {
	f := netfilter.Family(family)
	savedTheirs, err := netfilter.Parse(bytes.NewReader(theirs.Text[family]), f)
	if err != nil {
		return fmt.Errorf("parsing kube-proxy's rules: %w", err)
	}
	savedOurs, err := netfilter.Parse(bytes.NewReader(ours.Text[family]), f)
	if err != nil {
		return fmt.Errorf("parsing gridproxy's rules: %w", err)
	}
	savedTheirs, deviating := c.expectOf(savedTheirs)
	r.Deviating += deviating
	r.compareFlows(flows(c, f == netfilter.IPv6), savedTheirs, savedOurs)
	r.HealthChecks += len(theirs.Health[family])
	if !slices.Equal(theirs.Health[family], ours.Health[family]) {
		r.Differences = append(r.Differences, Difference{
			Kind:      HealthCheck,
			What:      fmt.Sprintf("node ports of %v", f),
			KubeProxy: strings.Join(theirs.Health[family], "\n"), Gridproxy: strings.Join(ours.Health[family], "\n"),
		})
	}
	r.Differences = append(r.Differences, compareRules(savedTheirs, savedOurs)...)
	r.Rules += countRules(savedTheirs)
	return nil
}

// compareFlows walks every packet through both texts. Equal is: the same destinations
// with the same probability and masquerade, rejected alike, dropped alike.
func (r *Comparison) compareFlows(all []Flow, theirs, ours netfilter.Saved) {
	for _, flow := range all {
		t, o := trace.Trace(theirs, flow.Packet), trace.Trace(ours, flow.Packet)
		if !slices.Equal(t.Ends, o.Ends) || len(t.Problems)+len(o.Problems) > 0 {
			r.Differences = append(r.Differences, Difference{Kind: Packet, What: flow.String(), KubeProxy: describe(t), Gridproxy: describe(o)})
		}
		r.Flows++
		for _, end := range t.Ends {
			r.Ends[kindOf(flow, end)]++
		}
	}
}

// kindOf names an end for the statistics, which say whether a run could find anything.
func kindOf(flow Flow, end trace.End) string {
	kind := string(end.Verdict)
	if end.Dst.Addr() != flow.Packet.Dst || end.Dst.Port() != flow.Packet.DstPort {
		kind = "endpoint"
	}
	if end.Masquerade {
		kind += " masqueraded"
	}
	return kind
}

// describe spells a walk with the rules it met.
func describe(o trace.Outcome) string {
	var b strings.Builder
	for _, problem := range o.Problems {
		fmt.Fprintf(&b, "problem: %s\n", problem)
	}
	for i, end := range o.Ends {
		fmt.Fprintf(&b, "%s %v masquerade=%t probability %s\n", end.Verdict, end.Dst, end.Masquerade, end.P)
		if i >= len(o.Paths) {
			continue
		}
		for _, step := range o.Paths[i] {
			fmt.Fprintf(&b, "  %v %s\n", step.Table, step.Text)
		}
	}
	return b.String()
}
