package cluster

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"

	"gridproxy/integration/env/wait"
)

// requests is CoreDNS' own counter, of a server, family, protocol and type. The daemon and the
// probes ask for TXT, and Pods here do not.
var requests = regexp.MustCompile(`(?m)^coredns_dns_requests_total\{.*type="([A-Za-z]+)".*\} (\S+)$`)

// counted is how many queries of Pods the server on a machine has got.
func (w *namesCluster) counted(machine string) (int, error) {
	page, err := w.Machine(machine).Namespace.Get(w.t.Context(), netip.MustParseAddrPort("127.0.0.1:9253"), "/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, m := range requests.FindAllSubmatch(page.Text, -1) {
		n, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return 0, fmt.Errorf("reading the counter of %s: %w", machine, err)
		}
		if string(m[1]) != "TXT" {
			sum += n
		}
	}
	return int(sum), nil
}

// allCounted does something, and checks that the server on each machine has got every query that
// was sent from it meanwhile: none was answered by kube-dns.
func (w *namesCluster) allCounted(do func()) {
	w.t.Helper()
	clear(w.sent)
	before := map[string]int{}
	for machine := range w.clients {
		n, err := w.counted(machine)
		must(w.t, err)
		before[machine] = n
	}
	do()
	for machine := range w.clients {
		// A query is counted after its answer was sent.
		wait.Until(w.t, "the server on "+machine+" has counted every query", func() error {
			n, err := w.counted(machine)
			if got := n - before[machine]; err == nil && got != w.sent[machine] {
				err = fmt.Errorf("of %d queries its server has got %d", w.sent[machine], got)
			}
			return err
		})
		if sent := w.sent[machine]; sent > 0 {
			w.t.Logf("%s: %d queries, all answered there", machine, sent)
		}
	}
}
