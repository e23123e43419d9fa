package main

import (
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/status"
	"gridproxy/integration/env/need"
	"gridproxy/topology/dnsfeed"

	"github.com/vishvananda/netns"
)

// dnsCluster is a closed headless Service with an endpoint in each of two units.
const dnsCluster = `
{apiVersion: v1, kind: Node, metadata: {name: bj-3, labels: {location: beijing}}}
---
{apiVersion: v1, kind: Node, metadata: {name: gz-2, labels: {location: guangzhou}}}
---
{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system}, spec: {clusterIP: 10.96.0.10, ports: [{name: dns, port: 53, protocol: UDP}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: db, annotations: {topologyKeys: '["location"]'}}, spec: {clusterIP: None, ports: [{port: 5432}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: mistaken, annotations: {topologyKeys: location}}, spec: {clusterIP: None, ports: [{port: 80}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, labels: {kubernetes.io/service-name: db, service.kubernetes.io/headless: ""}}
addressType: IPv4
ports: [{name: "", port: 5432}]
endpoints:
- {addresses: [10.0.0.7], nodeName: bj-3, hostname: db-0}
- {addresses: [10.0.1.7], nodeName: gz-2, hostname: db-1}
`

// namesOf are what a daemon says at the socket of names: the host names of the endpoints of db.
func namesOf(t *testing.T, socket string) (hostnames []string) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // it was only read
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	r := dnsfeed.NewReader(conn)
	hello, err := r.Hello()
	if err != nil || hello.Node != "bj-3" || hello.Service != "kube-system/kube-dns" {
		t.Fatalf("%+v, %v", hello, err)
	}
	u, err := r.Update()
	if err != nil {
		t.Fatal(err)
	}
	for _, svc := range u.Services {
		for _, e := range svc.Endpoints {
			hostnames = append(hostnames, svc.Service.Name+" "+e.Hostname)
		}
	}
	return hostnames
}

// dnsLeftovers are what --local-dns needs beside chains.
func dnsLeftovers(t *testing.T, ns netns.NsHandle) string {
	t.Helper()
	text := output(t, ns, "", "ipset", "list", "-n") + output(t, ns, "", "ip", "-o", "address", "show", "dev", "lo")
	return strings.Join(regexp.MustCompile(`KUBE-\S*LOCAL-DNS|169\.254\.20\.12|fd00:6772:6964::12`).FindAllString(text, -1), " ")
}

// TestLocalDNS: a daemon tells names, says that no grid-dns serves, and what it needs is gone
// after a cleanup, or once a daemon runs without it.
func TestLocalDNS(t *testing.T) {
	dir := t.TempDir()
	manifests, names, socket := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "n"), filepath.Join(dir, "s")
	write(t, manifests, dnsCluster)
	args := []string{"--node-name=bj-3", "--manifests=" + manifests, "--conntrack-max-per-core=0", "--status-socket=" + socket}
	with := append(args, "--local-dns", "--names-socket="+names)
	d := start(t, with...).ready(t)
	if rules := d.rules(t); strings.Count(rules, "-j KUBE-LOCAL-DNS") != 3 || !strings.Contains(rules, "--match-set KUBE-LOCAL-DNS dst,dst -j DNAT --to-destination 169.254.20.12:53") {
		t.Errorf("rules:\n%s", rules)
	}
	const all = "KUBE-LOCAL-DNS KUBE-6-LOCAL-DNS 169.254.20.12 fd00:6772:6964::12"
	if got := dnsLeftovers(t, d.ns); got != all {
		t.Errorf("sets and addresses: %s", got)
	}
	if got := strings.Join(namesOf(t, names), ","); got != "db db-0" {
		t.Errorf("names %s, want those of this unit", got)
	}
	d.until(t, "word of the malformed annotation", func() bool {
		return strings.Contains(d.output.String(), "service=default/mistaken reason=MalformedTopology")
	})
	d.untilStatus(t, socket, "that no grid-dns serves", func(s status.Status, _ int, _ string) bool {
		return len(s.DNS) == 2 && !s.DNS[0].Local && strings.Contains(s.DNS[0].Reason, "no DNS server of this node serves")
	})
	d.untilStatus(t, socket, "that no query comes over IPv6, which the Service has no address of", func(s status.Status, _ int, _ string) bool {
		return len(s.DNS) == 2 && !s.DNS[1].Local && s.DNS[1].Unasked && strings.Contains(s.DNS[1].Reason, "no query comes over IPv6")
	})
	if page := d.get("/metrics", 10249).body; !strings.Contains(page, "gridproxy_dns_return_wait_seconds{address=\"169") || strings.Contains(page, "{address=\"fd00:6772:6964::12\"}") {
		t.Error("metrics are not those of IPv4 alone")
	}
	if got := d.metric(t, regexp.QuoteMeta(`gridproxy_dns_local{address="169.254.20.12"}`), 10249); got != 0 {
		t.Errorf("gridproxy_dns_local is %v", got)
	}
	d.stop(t, syscall.SIGTERM)
	if got := dnsLeftovers(t, d.ns); got != all {
		t.Errorf("a daemon that ended took away %s: without it queries must go on", got)
	}

	cleaning := func(flags ...string) string {
		c := startCommand(t, d.ns, gridproxy(append([]string{"cleanup"}, flags...)...))
		if code := c.wait(t); code != 0 {
			t.Errorf("cleanup %s: code %d", flags, code)
		}
		return c.output.String()
	}
	for _, flags := range [][]string{{"--dry-run"}, nil} {
		if said := cleaning(flags...); !strings.Contains(said, " 2 sets") || !strings.Contains(said, " 2 addresses") {
			t.Errorf("cleanup %s said\n%s", flags, said)
		}
	}
	if got := dnsLeftovers(t, d.ns); got != "" {
		t.Errorf("after a cleanup there are %s", got)
	}

	again := startIn(t, d.ns, with...)
	again.until(t, "sets and addresses", func() bool { return dnsLeftovers(t, d.ns) == all })
	again.ready(t)
	again.stop(t, syscall.SIGKILL)
	without := startIn(t, d.ns, args...)
	without.until(t, "nothing of --local-dns to be left", func() bool {
		return dnsLeftovers(t, d.ns) == "" && !strings.Contains(without.rules(t), "LOCAL-DNS")
	})
}

// TestLocalDNSOfOneFamily: a machine without IPv6 has local DNS of IPv4. A Service that is not
// there is named.
func TestLocalDNSOfOneFamily(t *testing.T) {
	ns := newNamespace(t)
	setSysctl(t, ns, "net/ipv6/conf/all/disable_ipv6", "1")
	dir := t.TempDir()
	manifests := filepath.Join(dir, "c.yaml")
	write(t, manifests, dnsCluster)
	d := startIn(t, ns, "--node-name=bj-3", "--manifests="+manifests, "--conntrack-max-per-core=0", "--status-socket="+filepath.Join(dir, "s"),
		"--local-dns", "--dns-service=kube-system/coredns", "--names-socket="+filepath.Join(dir, "n"))
	d.ready(t)
	if got := dnsLeftovers(t, ns); got != "KUBE-LOCAL-DNS 169.254.20.12" || d.logged("not in force") > 0 {
		t.Errorf("sets and addresses: %s", got)
	}
	d.until(t, "the missing Service to be named", func() bool { return d.logged("Service kube-system/coredns has no cluster IP with port 53") == 1 })
}

// TestLocalDNSWithoutIPv6OnLoopback: a family whose address cannot be added is named, and does not
// turn off the other one. It is tried again.
func TestLocalDNSWithoutIPv6OnLoopback(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	for addresses, before := range map[string]string{
		"169.254.20.12,fd00:6772:6964::12": "KUBE-LOCAL-DNS KUBE-6-LOCAL-DNS 169.254.20.12",
		"fd00:6772:6964::12":               "KUBE-6-LOCAL-DNS", // no family can be led
	} {
		ns, dir := newNamespace(t), t.TempDir()
		setSysctl(t, ns, "net/ipv6/conf/lo/disable_ipv6", "1")
		manifests := filepath.Join(dir, "c.yaml")
		write(t, manifests, dnsCluster)
		d := startIn(t, ns, "--node-name=bj-3", "--manifests="+manifests, "--local-dns", "--dns-address="+addresses,
			"--names-socket="+filepath.Join(dir, "n"), "--status-socket="+filepath.Join(dir, "s"))
		d.ready(t)
		d.until(t, "IPv6 to be named", func() bool {
			return d.logged("DNS queries over IPv6 cannot be led to the DNS server of this node") == 1 && d.logged("adding address fd00:6772:6964::12") > 0
		})
		if got := dnsLeftovers(t, ns); got != before || d.logged("not in force") > 0 {
			t.Errorf("with %s, sets and addresses: %s", addresses, got)
		}
		setSysctl(t, ns, "net/ipv6/conf/lo/disable_ipv6", "0")
		d.until(t, "the address of IPv6", func() bool { return strings.HasSuffix(dnsLeftovers(t, ns), "fd00:6772:6964::12") })
		d.stop(t, syscall.SIGTERM)
	}
}

// TestLocalDNSWithoutSetMatch: on a kernel without xt_set, all rules but those of local DNS are
// written, and a message says what is missing.
func TestLocalDNSWithoutSetMatch(t *testing.T) {
	need.IPTables(t)
	refusal, err := need.NewRefusal(t.TempDir())
	if err == nil {
		err = refusal.Refuse("-m set")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", refusal.Path())
	dir := t.TempDir()
	manifests, socket := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "s")
	write(t, manifests, dnsCluster)
	d := start(t, "--node-name=bj-3", "--manifests="+manifests, "--local-dns", "--names-socket="+filepath.Join(dir, "n"), "--status-socket="+socket).ready(t)
	d.untilStatus(t, socket, "what is missing", func(s status.Status, _ int, _ string) bool {
		return len(s.DNS) == 2 && !s.DNS[0].Local && strings.Contains(s.DNS[0].Reason, "modprobe -a xt_set ip_set_hash_ipport")
	})
	d.until(t, "the message", func() bool {
		return d.logged("DNS queries over IPv4 cannot be led to the DNS server of this node") == 1
	})
	if rules := d.rules(t); strings.Contains(rules, "LOCAL-DNS") || !strings.Contains(rules, "kube-system/kube-dns:dns") {
		t.Errorf("want the rules of Services, and none of local DNS:\n%s", rules)
	}
}

// TestLocalDNSBadFlags: what cannot be meant is refused.
func TestLocalDNSBadFlags(t *testing.T) {
	for want, flags := range map[string][]string{
		"a shadow writes nothing": {"--shadow"},
		"the other proxy's":       {"--service-proxy-name=trial"},
		"no IP address":           {"--dns-address=localhost"},
		"of one family":           {"--dns-address=169.254.20.12,169.254.20.13"},
		"is of no use":            {"--dns-address=127.0.0.1"},
		"--dns-address is empty":  {"--dns-address="},
		"--names-socket is empty": {"--names-socket="},
		"want NAMESPACE/NAME":     {"--dns-service=kube-dns"},
		"no domain":               {"--cluster-domain=a_b"},
		"want cluster or refuse":  {"--dns-when-away=allow"},
	} {
		cmd := gridproxy(append([]string{"run", "--local-dns"}, flags...)...)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", flags, err, out)
		}
	}
}
