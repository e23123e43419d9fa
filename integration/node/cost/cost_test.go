package cost

import (
	"log/slog"
	"regexp"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/rules/iptables"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
)

type cost struct {
	Messages ipvs.Messages
	Restores []string // what was restored, without comments: chains of over 1,000 endpoints have fewer
}

// TestEqual: what a change costs is the same among 1,000 and among 5,000 Services.
func TestEqual(t *testing.T) {
	need.IPTables(t)
	need.IPVS(t)
	for _, variant := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		t.Run(string(variant), func(t *testing.T) {
			var few, many map[string]cost
			t.Run("1000", func(t *testing.T) { few = costs(t, variant, 1000) })
			t.Run("5000", func(t *testing.T) { many = costs(t, variant, 5000) })
			if diff := cmp.Diff(few, many); diff != "" {
				t.Errorf("among 1,000 Services (-) and 5,000 (+):\n%s", diff)
			}
			for what, c := range many {
				t.Logf("%s: %+v and %d bytes in %d runs", what, c.Messages, length(c.Restores), len(c.Restores))
			}
		})
	}
}

// costs are those of some changes among so many Services.
func costs(t *testing.T, variant netfilter.Variant, services int) map[string]cost {
	t.Helper()
	need.Namespace(t)
	restored := watched(t)
	tables, err := iptables.New(t.Context(), iptables.Config{Variant: variant, MasqueradeBit: 14, IPVS: true})
	must(t, err)
	b, err := ipvs.New(t.Context(), ipvs.BackendConfig{Tables: tables, DrainTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	c := newCluster(services)
	begin := time.Now()
	_, err = b.Sync(t.Context(), c.ruleset(), true)
	must(t, err)
	t.Logf("%d Services: the first sync took %s", services, time.Since(begin).Round(time.Millisecond))
	first := restored()
	t.Logf("%d Services: it sent %+v and restored %d bytes in %d runs", services, b.Status().Messages, length(first), len(first))

	all := map[string]cost{}
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"nothing", func() {}},
		{"the endpoints of a cluster IP", func() { c.move(17, 1) }},
		{"the endpoints of a Service with every frontend", func() { c.move(40, 1) }},
		{"the endpoints of one with external policy Local", func() { c.move(50, 1) }},
		{"the endpoints of one with source ranges", func() { c.move(70, 1) }},
		{"the endpoints of all of these", func() { c.move(17, 2); c.move(40, 2); c.move(50, 2); c.move(70, 2) }},
		{"a Service more", func() { c.add(9009) }},
		{"a Service less", c.removeLast},
		{"a Service with every frontend more", func() { c.add(9000) }},
		{"a Service with every frontend less", c.removeLast},
	} {
		change.do()
		before := b.Status().Messages
		_, err := b.Sync(t.Context(), c.ruleset(), false)
		must(t, err)
		all[change.what] = cost{less(b.Status().Messages, before), withoutComments(restored())}
	}
	return all
}

var comment = regexp.MustCompile(`-m comment --comment ("[^"]*"|\S+) `)

func withoutComments(texts []string) (out []string) {
	for _, s := range texts {
		out = append(out, comment.ReplaceAllString(s, ""))
	}
	return out
}

func length(texts []string) (n int) {
	for _, s := range texts {
		n += len(s)
	}
	return n
}

func less(a, b ipvs.Messages) ipvs.Messages {
	return ipvs.Messages{
		Servers: a.Servers - b.Servers, Destinations: a.Destinations - b.Destinations, Addresses: a.Addresses - b.Addresses,
		Entries: a.Entries - b.Entries, Sets: a.Sets - b.Sets, Links: a.Links - b.Links,
	}
}
