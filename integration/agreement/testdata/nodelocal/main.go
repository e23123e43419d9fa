// Command main is CoreDNS with the plugins that NodeLocal DNSCache is configured with, and no
// others: the yardstick for the memory of a DNS server on each node.
package main

import (
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/metrics"

	"github.com/coredns/coredns/coremain"
)

func main() { coremain.Run() }
