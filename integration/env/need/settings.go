package need

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Settings sets, in the network namespace of this thread, the sysctls that tests rely on to the
// kernel's defaults: a new namespace inherits some from the machine, where another proxy may have
// set them. Those of connection tracking exist only while its module is loaded.
func Settings() error {
	for _, s := range []struct{ name, value string }{
		{"net/ipv4/conf/all/route_localnet", "0"},
		{"net/ipv4/conf/default/route_localnet", "0"},
		{"net/netfilter/nf_conntrack_tcp_be_liberal", "0"},
		{"net/netfilter/nf_conntrack_tcp_timeout_close_wait", "60"},
		{"net/netfilter/nf_conntrack_tcp_timeout_established", "432000"},
		{"net/netfilter/nf_conntrack_udp_timeout", "30"},
		{"net/netfilter/nf_conntrack_udp_timeout_stream", "120"},
	} {
		err := os.WriteFile("/proc/sys/"+s.name, []byte(s.value), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("setting what tests rely on: %w", err)
		}
	}
	return nil
}
