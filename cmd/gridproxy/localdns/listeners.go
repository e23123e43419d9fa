package localdns

import (
	"context"
	"log/slog"
	"time"

	"gridproxy/rules/dnsredirect"
)

const betweenListeners = 5 * time.Second // from one look at who listens to the next

// keepLooking reports another process at the addresses, once until it is another one. Two looks
// have to find it: a DNS server that connects again, or ends, is none.
func (n *Node) keepLooking(ctx context.Context) {
	tick := time.NewTicker(betweenListeners)
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
		text := DescribeStrangers(Strangers(all, n.server.Clients()))
		if text == last && text != reported {
			if reported = text; text != "" {
				n.config.Report(slog.LevelError, "DNSAddressTaken", text)
			}
		}
		last = text
	}
}
