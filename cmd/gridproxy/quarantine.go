package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
)

// quarantineObserver reports Services whose rules this node's kernel refuses.
type quarantineObserver struct {
	findings driver.Findings
	reporter *event.Reporter
}

// Synced asks after every run that wrote: a quarantine may end.
func (o quarantineObserver) Synced(r syncer.Result) {
	if r.Backends == nil {
		return
	}
	o.reporter.Quarantined(r.View, o.findings.Quarantine())
	o.reporter.WithoutAffinity(r.View, o.findings.WithoutAffinity())
}

// checksWithout makes load balancers avoid this node for quarantined Services: their health-check
// node ports report no endpoint.
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

// evidenceLimit is how long explain reads the kernel's rules.
const evidenceLimit = 30 * time.Second

// evidenceHere returns which Services this machine's kernel refuses, by its rules. The result
// is empty if this machine is not the Node that is explained, or if this process may not read
// the rules.
func evidenceHere(ctx context.Context, o options.Options) (explain.Evidence, error) {
	if here, err := nodeName(""); err != nil || here != o.NodeName || os.Geteuid() != 0 {
		return explain.Evidence{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, evidenceLimit)
	defer cancel()
	found, err := driver.ReadEvidence(ctx, o)
	if err != nil {
		return explain.Evidence{}, fmt.Errorf("cannot find out whether this machine's kernel refuses the Service's rules: %w", err)
	}
	return found, nil
}
