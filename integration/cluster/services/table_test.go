package services

import (
	"fmt"
	"strings"
	"time"
)

type result struct {
	verdict, why string
	took         time.Duration
}

func table(names []string, proxies []string, results map[string]map[string]result) string {
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-*s", width, "scenario")
	for _, p := range proxies {
		fmt.Fprintf(&out, "  %-16s", p)
	}
	out.WriteString("\n")
	for _, name := range names {
		fmt.Fprintf(&out, "%-*s", width, name)
		for _, p := range proxies {
			cell := "not run"
			if r, ran := results[p][name]; ran {
				cell = fmt.Sprintf("%-7s %5.1f s", r.verdict, r.took.Seconds())
			}
			fmt.Fprintf(&out, "  %-16s", cell)
		}
		out.WriteString("\n")
	}
	for _, p := range proxies {
		count := map[string]int{}
		for _, r := range results[p] {
			count[r.verdict]++
		}
		fmt.Fprintf(&out, "%s: %d passed, %d failed, %d skipped, of %d\n",
			p, count["passed"], count[failedVerdict], count["skipped"], len(names))
	}
	return out.String()
}
