package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
)

// quarantineObserver tells of Services that this node's kernel does not take as they are.
type quarantineObserver struct {
	findings driver.Findings
	reporter *event.Reporter
}

// Synced asks after every run that decided: what the kernel takes may change.
func (o quarantineObserver) Synced(r syncer.Result) {
	if r.Backends == nil {
		return
	}
	o.reporter.Quarantined(r.View, o.findings.Quarantine())
	o.reporter.WithoutAffinity(r.View, o.findings.WithoutAffinity())
}

// checksWithout makes load balancers avoid this node for Services that its kernel refuses: their
// health-check node ports report no endpoint.
func checksWithout(checks []rules.HealthCheck, quarantined []event.Quarantined) []rules.HealthCheck {
	checks = slices.Clone(checks)
	for i, c := range checks {
		for _, q := range quarantined {
			if !q.Kept && q.Service.NamespacedName == c.Service && (q.Family == rules.IPv6) == c.IPv6 {
				checks[i].LocalReady = 0
			}
		}
	}
	return checks
}

// evidenceLimit is how long explain waits for the kernel's rules.
const evidenceLimit = 30 * time.Second

// evidenceHere is what this machine's rules say of Services that its kernel refuses, if this
// machine is the Node that is explained and this process may read its rules; else nothing.
func evidenceHere(ctx context.Context, o options.Options) (explain.Evidence, error) {
	if here, err := nodeName(""); err != nil || here != o.NodeName || os.Geteuid() != 0 {
		return explain.Evidence{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, evidenceLimit)
	defer cancel()
	found, err := driver.ReadEvidence(ctx, o)
	if err != nil {
		return explain.Evidence{}, fmt.Errorf("whether this machine's kernel takes the Service's rules is not known: %w", err)
	}
	return found, nil
}
