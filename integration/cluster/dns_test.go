package cluster

import (
	"testing"
	"time"
)

// TestDNS shows what users of DNS get when they turn it on in the chart: the same names lead to
// their own unit's Pods, all other names are those of the real CoreDNS, changes are in the answers
// as soon as there, and names are answered while the cloud is away. In the end DNS is turned off
// and on, upgraded and uninstalled while Pods ask all the time.
func TestDNS(t *testing.T) {
	w := newNamesCluster(t)
	steps := []struct {
		name string
		do   func()
	}{
		{"D-04: wired by docs/dns.md alone", w.wired},
		{"table", w.table},
		{"manual", w.manual},
		{"names of Grids", w.gridNames},
		{"D-03: no record that is wrong", w.records},
		{"outside of podCIDRs", w.strangePod},
		{"changes", w.changes},
		{"change of unit", w.changeUnit},
		{"offline", w.offline},
		{"switched off", w.switchedOff},
		{"switched on", w.switchedOn},
		{"upgrade", w.upgradedServers},
		{"uninstall", w.uninstalled},
	}
	for i, step := range steps {
		begin := time.Now()
		passed := t.Run(step.name, func(t *testing.T) {
			w.t = t
			step.do()
		})
		w.t = t
		t.Logf("%s: %s", step.name, time.Since(begin).Round(100*time.Millisecond))
		if !passed {
			w.showPrograms()
		}
		if !passed && i == 0 {
			t.Fatalf("all other steps rest on %q", step.name)
		}
	}
}
