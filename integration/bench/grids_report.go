package main

import (
	"fmt"
	"strings"
	"time"
)

func (m manyGrids) report(phases []phase, machine []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n# %d DeploymentGrids in %d units, %d requests a second\n\n", m.grids, m.units, m.rate)
	fmt.Fprintf(&b, "%s\n\n| phase | time | requests | writes | sent | received | memory |\n|---|---|---|---|---|---|---|\n", strings.Join(machine, "\n"))
	for _, p := range phases {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d KiB | %d KiB | %s |\n", p.name, p.took.Round(10*time.Millisecond), p.requests, p.writes, p.sent>>10, p.received>>10, mebibytes(p.resident))
	}
	fmt.Fprintf(&b, "\nconverge / plain writer: %.2f\n", phases[1].took.Seconds()/phases[0].took.Seconds())
	return b.String()
}

func mebibytes(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
