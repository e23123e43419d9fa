package status

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/metrics"
)

// TestTable: one line for each fact, with what is wrong in its place.
func TestTable(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	s := Status{
		CurrentTime:      now,
		Daemon:           Daemon{Version: "v1.2.3", Commit: "abc", Started: ago(time.Hour), Mode: "ipvs", Variant: "legacy", Shadow: true, Source: SourceAPIServer},
		Node:             Node{Name: "bj-3", Known: true},
		Knowledge:        Knowledge{Snapshot: ago(5 * time.Minute), LostSince: ago(4 * time.Minute), LostReason: "refused", HeldBack: true, APIProxies: []APIProxy{{"127.0.0.1:51003", true}, {"[::1]:51003", false}}},
		Sync:             Sync{LastStep: ago(3 * time.Minute), Hangs: true},
		LastSync:         &Run{End: ago(5 * time.Minute), TookSeconds: 1.5, Error: "no table"},
		LastVerification: &Run{End: ago(time.Minute), ReadBack: true, Repaired: 3},
		Families: []Family{
			{Name: "IPv4", State: metrics.StateFailed, Reason: "no table", Synced: ago(time.Minute)},
			{Name: "IPv6", State: metrics.StateLeftOut, Reason: "no tool", Healthy: true},
		},
		Services:     Services{All: 9, Open: 5, Closed: 4, Refused: 5, Malformed: 1, Quarantined: 1},
		FirstRefused: []string{"default/a", "default/b", "default/c"}, FirstMalformed: []string{"default/m"},
		UnopenedPorts: 1, FirstUnopened: []UnopenedPort{{"default/web", "0.0.0.0:31000", 31000, "address already in use"}},
		Quarantined: []QuarantinedPort{{"default/web", "", "IPv4", "refused"}},
		Drift:       Drift{Repaired: 7, Last: ago(time.Minute)},
		OtherProxy:  &OtherProxy{Since: ago(time.Minute)},
		DNS: []DNSPath{
			{Address: "169.254.20.12", Local: true, Since: ago(time.Minute)},
			{Address: "fd00::12", Reason: "it hangs", Since: ago(time.Hour)},
			{Address: "fd00::13", Local: true, Reason: "it hangs", Since: ago(time.Hour)},
			{Address: "fd00::14", Unasked: true, Reason: "no query comes over IPv6"},
			{Address: "fd00::15", Reason: "queries left it", Since: ago(time.Minute), ReturnWaitSeconds: 14},
		},
	}
	const want = `Healthy: no
Node: bj-3 (about to be removed: load balancers must not send to it)
Version: v1.2.3, commit abc, started 1h0m0s ago
Mode: ipvs (iptables-legacy), shadow: writes nothing
IPv4: failing, last written 1m0s ago: no table (a change has waited for too long)
IPv6: not used: no tool
Cluster: taken up from the API server 5m0s ago, not readable for 4m0s: refused, a new list is held back
API proxy: 127.0.0.1:51003 answers: default/kubernetes leads to it
API proxy: [::1]:51003 does not answer: default/kubernetes leads to the API servers
DNS: queries go to grid-dns at 169.254.20.12 for 1m0s
DNS: queries go to the DNS of the cluster for 1h0m0s, not to grid-dns at fd00::12: it hangs
DNS: queries go to grid-dns at fd00::13 alone, because of --dns-when-away refuse, although it hangs
DNS: grid-dns at fd00::14 is not asked: no query comes over IPv6
DNS: queries go to the DNS of the cluster for 1m0s, and back to grid-dns at fd00::15 in 14s at the earliest: queries left it
Sync: hangs, last step 3m0s ago
Last sync: 5m0s ago, took 1.5s, failed: no table
Last verification: 1m0s ago, took 0s, repaired 3 chains
Services: 9: 5 open, 4 closed
Refused here: 5 closed without an endpoint that this node may use
 default/a, default/b, default/c and 2 more; gridproxy explain default/a says why
Malformed: 1 with topology annotations that cannot be read
 default/m; gridproxy explain default/m says why
Quarantined: 1 whose rules the kernel refuses
 default/web port - of IPv4: refused
 gridproxy explain default/web says more
Health ports: 1 not open, so that load balancers do not use this node
 default/web at 0.0.0.0:31000: address already in use; ss -Hltnp 'sport = :31000' on the Node names the program
Repaired: 7 chains since the start, last 1m0s ago
Other proxy: suspected since 1m0s ago
`
	var out strings.Builder
	if err := s.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	if got := regexp.MustCompile(` {2,}`).ReplaceAllString(out.String(), " "); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	empty := Status{Daemon: Daemon{Source: SourceAPIServer}, Families: []Family{{Name: "IPv4", State: StateStarting, Healthy: true}}}
	out.Reset()
	if err := empty.WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`IPv4: +not written yet`, `Cluster: +not read from the API server yet`, `Last sync: +none yet`, `Other proxy: +none found`} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(out.String()) {
			t.Errorf("before the first run there is no line %q in\n%s", line, out.String())
		}
	}
}
