package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// quarantineCounts is how many Service ports the kernel does not take, for every family in use.
func (m mechanism) quarantineCounts() map[string]int {
	counts := map[string]int{}
	for _, f := range m.tables.Families() {
		counts[f.String()] = 0
	}
	for _, q := range m.tables.Quarantine() {
		counts[q.Family.String()]++
	}
	return counts
}

// withoutAffinity are the families in which the kernel cannot keep a client at its endpoint.
func (m mechanism) withoutAffinity() []string {
	var names []string
	for _, f := range m.tables.WithoutAffinity() {
		names = append(names, f.String())
	}
	return names
}

// quarantineObserver tells of Services that this node's kernel does not take as they are.
type quarantineObserver struct {
	tables *iptables.Backend
	teller *event.Teller
}

// Synced asks after every run that decided: what the kernel takes may change.
func (o quarantineObserver) Synced(r syncer.Result) {
	if r.Backends == nil {
		return
	}
	o.teller.Quarantined(r.View, o.tables.Quarantine())
	o.teller.WithoutAffinity(r.View, o.tables.WithoutAffinity())
}

// checksWithout makes load balancers avoid this node for Services that its kernel refuses: their
// health-check node ports report no endpoint.
func checksWithout(checks []rules.HealthCheck, quarantined []iptables.Quarantined) []rules.HealthCheck {
	checks = slices.Clone(checks)
	for i, c := range checks {
		for _, q := range quarantined {
			if !q.Kept && q.Service.NamespacedName == c.Service && (q.Family == netfilter.IPv6) == c.IPv6 {
				checks[i].LocalReady = 0
			}
		}
	}
	return checks
}

// evidenceLimit is how long explain waits for the kernel's rules.
const evidenceLimit = 30 * time.Second

// quarantineHere says which ports of a Service this machine's kernel refuses, if this machine is
// the Node that is explained and this process may read its rules.
func quarantineHere(ctx context.Context, o options.Options, service types.NamespacedName, v topology.View) ([]string, error) {
	if here, err := nodeName(""); err != nil || here != o.NodeName || os.Geteuid() != 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, evidenceLimit)
	defer cancel()
	variant, err := o.Variant, error(nil)
	if variant == "" || variant == netfilter.VariantAuto {
		if variant, err = iptables.DetectVariant(ctx); err != nil {
			return nil, fmt.Errorf("whether this machine's kernel takes the Service's rules is not known: %w", err)
		}
	}
	found, err := iptables.ReadEvidence(ctx, variant, o.Names())
	if err != nil {
		return nil, fmt.Errorf("whether this machine's kernel takes the Service's rules is not known: %w", err)
	}
	var notes []string
	for _, sp := range v.Ports {
		switch name := sp.Name.String(); {
		case sp.Name.NamespacedName != service:
		case found.Quarantined[name]:
			notes = append(notes, fmt.Sprintf("%s is quarantined here and refused at all its addresses: this machine's kernel does not take its rules, "+
				"which are tried again at each verification; the log of gridproxy and the Event Quarantined have the kernel's words", name))
		case found.WithoutAffinity[name]:
			notes = append(notes, name+" is served here without session affinity: this machine's kernel lacks xt_recent")
		}
	}
	return notes, nil
}
