package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"gridproxy/integration/env/apiserver"

	"github.com/miekg/dns"
)

// The servers, by what they are the DNS of.
const (
	dnsOfUnit    = "grid-dns"
	dnsOfCluster = "CoreDNS, kubernetes"
	dnsOfCache   = "CoreDNS, cache"
)

// Their addresses. That of grid-dns is the one that gridproxy adds.
const (
	unitDNSAddr    = "169.254.20.12"
	clusterDNSAddr = "169.254.20.11"
	cacheDNSAddr   = "169.254.20.10"
)

// The Corefiles. That of the cluster's DNS is as kubeadm has it, without a cache; that of the cache
// as NodeLocal DNSCache has it for names of the cluster.
const (
	clusterCorefile = `.:53 {
    bind %s
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig %s
        pods insecure
        ttl 30
    }
    prometheus 127.0.0.1:9153
}
`
	cacheCorefile = `cluster.local:53 in-addr.arpa:53 {
    bind %s
    errors
    cache 30
    forward . %s {
        force_tcp
    }
    prometheus 127.0.0.1:9154
}
`
)

type dnsServer struct {
	*apiserver.Child
	name, addr string
}

// dnsServers are all of one run, and the daemon.
type dnsServers struct {
	daemon *daemon
	all    []*dnsServer
}

func (s *dnsServers) stop() {
	if s == nil {
		return
	}
	for _, server := range s.all {
		server.Stop(syscall.SIGTERM, 10*time.Second)
	}
	if s.daemon != nil {
		s.daemon.stop()
	}
}

func (s *dnsServers) named(name string) *dnsServer {
	for _, server := range s.all {
		if server.name == name {
			return server
		}
	}
	return nil
}

// alive is an error that shows the log of a program that has ended.
func (s *dnsServers) alive() error {
	errs := []error{s.daemon.alive()}
	for _, server := range s.all {
		errs = append(errs, alive(server.name, server.Child))
	}
	return errors.Join(errs...)
}

// startServers starts the daemon and all servers, and returns when each knows the last Service.
func (c *dnsCompare) startServers(ctx context.Context) (*dnsServers, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.world.startLimit, notServing{c.world.startLimit})
	defer cancel()
	s := &dnsServers{}
	dir := c.world.dir
	config, err := apiserver.WriteKubeconfig(dir, "coredns.kubeconfig", c.world.cluster.Admin())
	if err != nil {
		return s, err
	}
	socket := filepath.Join(dir, "names.sock")
	s.daemon, _, err = c.world.start(gridproxy, apiserver.NFT, "--local-dns", "--names-socket="+socket, "--dns-address="+unitDNSAddr, "--status-socket=")
	if err != nil {
		return s, err
	}
	if err := s.daemon.WaitFor(ctx, c.node.Readyz); err != nil {
		return s, err
	}
	for _, server := range []struct {
		name, addr, corefile string
		args                 []string
	}{
		{name: dnsOfCluster, addr: clusterDNSAddr, corefile: fmt.Sprintf(clusterCorefile, clusterDNSAddr, config)},
		{name: dnsOfCache, addr: cacheDNSAddr, corefile: fmt.Sprintf(cacheCorefile, cacheDNSAddr, clusterDNSAddr)},
		{name: dnsOfUnit, addr: unitDNSAddr, args: []string{
			"serve", "--address=" + unitDNSAddr, "--names-socket=" + socket, "--names-file=" + filepath.Join(dir, "names"),
		}},
	} {
		if server.corefile != "" {
			path := filepath.Join(dir, server.addr+".corefile")
			if err := os.WriteFile(path, []byte(server.corefile), 0o644); err != nil {
				return s, fmt.Errorf("writing the Corefile of %s: %w", server.name, err)
			}
			server.args = []string{"-conf", path}
		}
		child, err := apiserver.StartChild(apiserver.Spec{
			Name: server.name, Path: c.programs[server.name], Args: server.args, Env: c.node.Env, Dir: dir, Namespace: c.node,
		})
		if err != nil {
			return s, err
		}
		started := &dnsServer{Child: child, name: server.name, addr: server.addr}
		s.all = append(s.all, started)
		last := namedService{c.seeded - 1}
		if err := child.WaitFor(ctx, func(context.Context) error { return c.knows(started, last.dnsName()) }); err != nil {
			return s, err
		}
	}
	return s, nil
}

// knows returns an error unless a server has an address for a name.
func (c *dnsCompare) knows(server *dnsServer, name string) error {
	addrs, err := c.ask(server, name)
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("%s does not know %s", server.name, name)
	}
	return err
}

func (c *dnsCompare) ask(server *dnsServer, name string) (addrs []string, err error) {
	err = c.node.Do(func() error {
		conn, err := net.DialTimeout("udp", server.addr+":53", time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		client := dns.Client{Timeout: time.Second}
		answer, _, err := client.ExchangeWithConn(new(dns.Msg).SetQuestion(name+".", dns.TypeA), &dns.Conn{Conn: conn})
		if err != nil {
			return err
		}
		for _, record := range answer.Answer {
			if a, is := record.(*dns.A); is {
				addrs = append(addrs, a.A.String())
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("asking %s for %s: %w", server.name, name, err)
	}
	return addrs, nil
}
