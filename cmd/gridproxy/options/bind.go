package options

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// bind is the address of one of the daemon's servers. As with kube-proxy, two flags decide it:
// --NAME-bind-address, and --NAME-port, which kube-proxy has kept from its first releases.
type bind struct {
	address *string // the result: IP:PORT; "" = not served
	port    *uint16 // of --NAME-port
	given   string  // IP:PORT, IP or nothing, of --NAME-bind-address
	preset  uint16
}

func newBind(address *string, port *uint16) *bind {
	return &bind{address: address, port: port, given: *address, preset: *port}
}

// decide sets *b.address from both flags. Port 0 means no server. Any other port is for an
// address that has none.
func (b *bind) decide() {
	ip, err := netip.ParseAddr(b.given)
	switch {
	case *b.port == 0:
		*b.address = ""
	case err == nil:
		*b.address = netip.AddrPortFrom(ip, *b.port).String()
	default:
		*b.address = b.given
	}
}

// bindAddress is the pflag.Value of --NAME-bind-address: IP:PORT or, as with kube-proxy, an IP
// alone. An empty text switches the server off.
type bindAddress struct{ *bind }

func (bindAddress) Type() string { return "ip:port" }

func (v bindAddress) String() string {
	if v.bind == nil {
		return ""
	}
	return *v.address
}

func (v bindAddress) Set(text string) error {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		text = ap.String()
	} else if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		text = ip.String()
	} else if text != "" {
		return fmt.Errorf("want IP:PORT such as 127.0.0.1:%d or [::]:%d, or nothing for no server", v.preset, v.preset)
	}
	v.given = text
	v.decide()
	return nil
}

// bindPort is the pflag.Value of --NAME-port.
type bindPort struct{ *bind }

func (bindPort) Type() string { return "port" }

func (v bindPort) String() string {
	if v.bind == nil {
		return ""
	}
	return strconv.Itoa(int(*v.port))
}

func (v bindPort) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return fmt.Errorf("want a port, 1 to 65535, or 0 for no server")
	}
	*v.port = uint16(n)
	v.decide()
	return nil
}

// unusedPort returns a warning if --NAME-port does not count, because the address has a port.
func unusedPort(server, address string, port, preset uint16) []string {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || port == preset || ap.Port() == port {
		return nil
	}
	return []string{fmt.Sprintf("--%s-port %d has no effect, as with kube-proxy, because --%s-bind-address %s has a port; give --%s-bind-address %s",
		server, port, server, ap, server, netip.AddrPortFrom(ap.Addr(), port))}
}
