package netns

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// FlowElsewhere is an error that describes a flow through the namespace to one of these addresses
// that is answered by an address outside of by; nil = there is none. A client that takes the port
// of such a flow reaches the same server.
func (n *Namespace) FlowElsewhere(to, by []netip.Addr) error {
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		flows, err := n.links.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil {
			return fmt.Errorf("listing flows in %s: %w", n.Name, err)
		}
		for _, f := range flows {
			asked, _ := netip.AddrFromSlice(f.Forward.DstIP)
			answers, _ := netip.AddrFromSlice(f.Reverse.SrcIP)
			if slices.Contains(to, asked.Unmap()) && !slices.Contains(by, answers.Unmap()) {
				return fmt.Errorf("in %s there is %s", n.Name, f)
			}
		}
	}
	return nil
}
