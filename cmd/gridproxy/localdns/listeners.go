package localdns

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"gridproxy/rules/dnsredirect"
)

// keepLooking looks for other processes at the addresses until ctx ends, and reports each once.
// Two looks have to find it: a DNS server may just connect again, or end.
func (n *Node) keepLooking(ctx context.Context) {
	tick := time.NewTicker(listenersPeriod)
	defer tick.Stop()
	last, reported := "", ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var servers []int
		for _, c := range n.server.Clients() {
			servers = append(servers, c.PID)
		}
		all, err := dnsredirect.ReadListeners(n.config.Options.Addresses, servers)
		if err != nil {
			n.config.Log.Debug(err.Error())
			continue
		}
		text := describeOthers(otherListeners(all, n.server.Clients()))
		if text == last && text != reported {
			if reported = text; text != "" {
				n.config.Report(slog.LevelError, "DNSAddressTaken", text)
			}
		}
		last = text
	}
}

// otherListeners returns the listeners that are not of the DNS servers of this node. Where this
// process cannot see who has a socket open, each DNS server may have one of each kind.
func otherListeners(all []dnsredirect.Listener, clients []Client) (others []dnsredirect.Listener) {
	isClient := func(pid int) bool {
		return pid > 0 && slices.ContainsFunc(clients, func(c Client) bool { return c.PID == pid })
	}
	unseen := map[dnsredirect.Listener]int{} // by Network and At
	for _, l := range all {
		kind := dnsredirect.Listener{Network: l.Network, At: l.At}
		switch {
		case isClient(l.PID):
			unseen[kind]++
		case l.PID > 0:
			others = append(others, l)
		}
	}
	for _, l := range all {
		if l.PID > 0 {
			continue
		}
		if unseen[l]++; unseen[l] > len(clients) {
			others = append(others, l)
		}
	}
	return others
}

// describeOthers returns what is wrong and what to do, or "" without others.
func describeOthers(others []dnsredirect.Listener) string {
	var words []string
	for _, l := range others {
		who := "a process that this one cannot see (ss -lnp shows it)"
		if l.PID > 0 {
			who = fmt.Sprintf("process %d (%s)", l.PID, l.Program)
		}
		words = append(words, fmt.Sprintf("%s has %s over %s", who, l.At, l.Network))
	}
	if len(words) == 0 {
		return ""
	}
	slices.Sort(words)
	return "another process listens where the DNS server of this node answers, and takes its queries: " + strings.Join(slices.Compact(words), ", ") + "; end it, or choose another --dns-address"
}
