package main

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

// rulesConfig is what the operator decides about Services, with the API servers that this process
// uses. Every command that compiles rules takes it from here.
func rulesConfig(o options.Options) rules.Config {
	c := o.Rules()
	for _, server := range apiServers(o) {
		if addr, ok := serverAddress(server); ok && !slices.Contains(c.APIServers, addr) {
			c.APIServers = append(c.APIServers, addr)
		}
	}
	return c
}

// apiServers are the servers that restConfig connects to, as HOST:PORT. A kubeconfig that cannot
// be read names none: connecting says so.
func apiServers(o options.Options) []string {
	switch {
	case len(o.Manifests) > 0:
		return nil
	case o.Kubeconfig != "":
		config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
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

// serverAddress reads HOST:PORT; false where the host is a name. What a name stands for may change
// while the daemon runs, and is not asked.
func serverAddress(text string) (netip.AddrPort, bool) {
	addr, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr.Addr().Unmap().WithZone(""), addr.Port()), true
}
