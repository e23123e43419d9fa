package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The limits of a changed slice, at the largest number of Services.
const (
	maxChangeDaemon = 5 * time.Millisecond
	maxChangeServer = 2 * time.Millisecond
)

func (c *dnsCompare) report(results []dnsResult, facts []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n# grid-dns against CoreDNS\n\n- %s\n", strings.Join(facts, "\n- "))
	fmt.Fprintf(&b, "- medians of %d rounds of %d s for each load; a ratio is the median of the rounds' ratios (smallest to largest)\n- of the best: the ratio of the best rounds of each, which other programs on the machine disturbed least\n", c.rounds, c.seconds)
	for _, r := range results {
		fmt.Fprintf(&b, "\n## %d Services, %d different questions\n\n", r.services, r.questions)
		b.WriteString("| | compared with | it has | grid-dns has | ratio | of the best | target |\n|---|---|---|---|---|---|---|\n")
		for _, row := range dnsRows(r) {
			b.WriteString(row.text())
		}
	}
	for _, r := range results {
		for _, change := range r.changes {
			fmt.Fprintf(&b, "\nOne changed EndpointSlice of %d Services, %s: gridproxy %s", r.services, change.what, short(change.daemon))
			if strings.HasPrefix(change.what, "a headless") {
				fmt.Fprintf(&b, " (≤ %s %s), grid-dns %s (≤ %s %s)", maxChangeDaemon, metOrMissed(change.daemon <= maxChangeDaemon),
					short(change.server), maxChangeServer, metOrMissed(change.server <= maxChangeServer))
			} else {
				fmt.Fprintf(&b, ", grid-dns %s", short(change.server))
			}
			fmt.Fprintf(&b, ", programs that gridproxy starts %s.\n", short(change.started))
		}
		const rounding = 10 * time.Microsecond
		if n := len(r.lags); n > 0 {
			fmt.Fprintf(&b, "\ngrid-dns answers with a change later than CoreDNS by %s in half of %d changes, from %s to %s.\n",
				r.lags[n/2].Round(rounding), n, r.lags[0].Round(rounding), r.lags[n-1].Round(rounding))
		}
		if f := r.flood; f.rate > 0 {
			fmt.Fprintf(&b, "\nCoreDNS loses %.0f %% of another client's queries while one floods it with %d SRV queries a second. At half of that rate grid-dns answers %.0f %% (≥ 95 %% %s), and has %d MiB at most (≤ 128 MiB %s).\n",
				100*f.lost, f.rate, 100*f.answered, metOrMissed(f.answered >= 0.95), f.memory>>20, metOrMissed(f.memory <= 128<<20))
		}
	}
	return b.String()
}

func metOrMissed(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}

// dnsRow compares a figure of grid-dns with that of another server.
type dnsRow struct {
	what, other  string
	theirs, ours []float64 // by round
	format       string
	unit         float64 // of format
	least, most  float64 // targets of the ratio; 0 = none
}

func dnsRows(r dnsResult) []dnsRow {
	// A cache holds what was asked, however many Services there are: its memory is only compared
	// where there are few.
	memoryTarget, cacheMemoryTarget := 0.9, 0.0
	if r.services <= 1000 {
		memoryTarget, cacheMemoryTarget = 0.6, 1.1
	}
	row := func(what, other string, loads map[string][]dnsLoad, of func(dnsLoad) float64) dnsRow {
		return dnsRow{what: what, other: other, theirs: each(loads[other], of), ours: each(loads[dnsOfUnit], of), format: "%.0f", unit: 1}
	}
	perSecond := func(l dnsLoad) float64 { return l.perSecond }
	busy := func(l dnsLoad) float64 { return l.busy }
	var rows []dnsRow
	add := func(d dnsRow, format string, unit, least, most float64) {
		d.format, d.unit, d.least, d.most = format, unit, least, most
		rows = append(rows, d)
	}
	const micros, millis, mebi = 1e-6, 1e-3, 1 << 20
	add(row("queries a second", dnsOfCluster, r.known, perSecond), "%.0f", 1, 1, 0)
	add(row("… processor time for a query", dnsOfCluster, r.known, busy), "%.1f µs", micros, 0, 0)
	add(row("queries of missing names a second", dnsOfCluster, r.missing, perSecond), "%.0f", 1, 1, 0)
	add(row("… processor time for a query", dnsOfCluster, r.missing, busy), "%.1f µs", micros, 0, 0)
	add(row(fmt.Sprintf("99th percentile of latency, %d queries a second", r.rate), dnsOfCluster, r.steady, func(l dnsLoad) float64 { return l.p99 }), "%.2f ms", millis, 0, 1)
	add(dnsRow{what: "resident memory after a round", other: dnsOfCluster, theirs: r.memory[dnsOfCluster], ours: r.memory[dnsOfUnit]}, "%.1f MiB", mebi, 0, memoryTarget)
	add(row("queries a second, cache filled", dnsOfCache, r.known, perSecond), "%.0f", 1, 0.9, 0)
	add(row("… processor time for a query", dnsOfCache, r.known, busy), "%.1f µs", micros, 0, 0)
	add(dnsRow{what: "resident memory after a round", other: dnsOfCache, theirs: r.memory[dnsOfCache], ours: r.memory[dnsOfUnit]}, "%.1f MiB", mebi, 0, cacheMemoryTarget)
	return rows
}

func each(loads []dnsLoad, of func(dnsLoad) float64) []float64 {
	all := make([]float64, len(loads))
	for i, l := range loads {
		all[i] = of(l)
	}
	return all
}

func (d dnsRow) text() string {
	ratios := make([]float64, len(d.ours))
	for i := range ratios {
		ratios[i] = d.ours[i] / d.theirs[i]
	}
	ratio, target := median(ratios), ""
	switch {
	case d.least > 0:
		target = fmt.Sprintf("≥ %.2f %s", d.least, metOrMissed(ratio >= d.least))
	case d.most > 0:
		target = fmt.Sprintf("≤ %.2f %s", d.most, metOrMissed(ratio <= d.most))
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %.2f (%.2f to %.2f) | %.2f | %s |\n", d.what, d.other, d.cell(d.theirs), d.cell(d.ours),
		ratio, slices.Min(ratios), slices.Max(ratios), d.best(d.ours)/d.best(d.theirs), target)
}

// cell is the median of all rounds and the best of them.
func (d dnsRow) cell(all []float64) string {
	return fmt.Sprintf(d.format+" (best "+d.format+")", median(all)/d.unit, d.best(all)/d.unit)
}

// best is that of the round that other programs disturbed least.
func (d dnsRow) best(all []float64) float64 {
	if d.least > 0 {
		return slices.Max(all)
	}
	return slices.Min(all)
}
