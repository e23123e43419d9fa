package apiserver

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// RulesConfig returns the options of rules.Compile, with the addresses of the API servers that
// this process uses, which no Service may take. Every command that compiles rules uses it.
func RulesConfig(o options.Options) rules.Config {
	c := o.Rules()
	for _, server := range apiServers(o) {
		if addr, ok := serverAddress(server); ok && !slices.Contains(c.APIServers, addr) {
			c.APIServers = append(c.APIServers, addr)
		}
	}
	return c
}

// apiServers returns the servers that RestConfig connects to, as HOST:PORT. It returns nil for
// manifests, and for a kubeconfig that cannot be read: connecting reports that error.
func apiServers(o options.Options) []string {
	switch {
	case len(o.Manifests) > 0:
		return nil
	case o.Kubeconfig != "" || o.Master != "":
		config, err := clientcmd.BuildConfigFromFlags(o.Master, o.Kubeconfig)
		if err != nil {
			return nil
		}
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return nil
		}
		return []string{hostPort(server)}
	case len(o.APIServers) > 0:
		return o.APIServers
	default:
		return []string{net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))}
	}
}

func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// serverAddress parses HOST:PORT. It returns false if the host is a name. Names are not
// resolved, because their addresses may change while the daemon runs.
func serverAddress(text string) (netip.AddrPort, bool) {
	addr, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr.Addr().Unmap().WithZone(""), addr.Port()), true
}
