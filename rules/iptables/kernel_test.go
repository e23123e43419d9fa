package iptables

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// private puts the calling goroutine, and every process it starts, into a network namespace of its
// own, with its own lock file for iptables-legacy. The thread, and with it the namespace, ends with
// the test. A subtest is another goroutine: it has to enter.
func private(t testing.TB) {
	t.Helper()
	need.IPTables(t)
	t.Setenv("XTABLES_LOCKFILE", filepath.Join(t.TempDir(), "lock"))
	runtime.LockOSThread()
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	mustBePrivate(t)
}

// here is the namespace of the calling goroutine, for its subtests to enter.
func here(t testing.TB) netns.NsHandle {
	t.Helper()
	ns, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Close() })
	return ns
}

// enter puts the goroutine of a subtest into its parent's namespace.
func enter(t testing.TB, ns netns.NsHandle) {
	t.Helper()
	runtime.LockOSThread()
	if err := netns.Set(ns); err != nil {
		t.Fatal(err)
	}
	mustBePrivate(t)
}

// mustBePrivate stops a test that would touch the namespace it was started from. Every function
// here that reads or writes a kernel calls it first.
func mustBePrivate(t testing.TB) {
	t.Helper()
	here, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	outside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", os.Getppid()))
	if err != nil {
		t.Fatal(err)
	}
	if here == outside {
		t.Fatal("this goroutine is not in a namespace of its own: call private, or enter in a subtest")
	}
}

// eachKernel runs a test for every variant and family, each in a namespace of its own.
func eachKernel(t *testing.T, run func(t *testing.T, v netfilter.Variant, f netfilter.Family)) {
	for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
			t.Run(fmt.Sprintf("%s/%s", v, f), func(t *testing.T) {
				private(t)
				run(t, v, f)
			})
		}
	}
}

// eachVariant runs a test for both variants, each in a namespace of its own.
func eachVariant(t *testing.T, run func(t *testing.T, v netfilter.Variant)) {
	for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		t.Run(string(v), func(t *testing.T) {
			private(t)
			run(t, v)
		})
	}
}

// recorder records from the log what a Backend restores.
type recorder struct {
	slog.Handler
	t      testing.TB
	inputs *[]string
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }

func (r *recorder) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &recorder{Handler: r.Handler.WithAttrs(attrs), t: r.t, inputs: r.inputs}
}

func (r *recorder) Handle(ctx context.Context, line slog.Record) error {
	if line.Message != messageInput {
		return r.Handler.Handle(ctx, line)
	}
	mustBePrivate(r.t)
	line.Attrs(func(a slog.Attr) bool {
		*r.inputs = append(*r.inputs, a.Value.String())
		return true
	})
	return nil
}

// take are all inputs since the last call.
func (r *recorder) take() []string {
	all := *r.inputs
	*r.inputs = nil
	return all
}

// newBackend is a Backend of one variant in the test's namespace, in iptables mode.
func newBackend(t testing.TB, v netfilter.Variant, families ...netfilter.Family) (*Backend, *recorder) {
	t.Helper()
	return newBackendOf(t, v, false, families...)
}

// newBackendOf is a Backend of one mode; the sets of IPVS mode must exist before it syncs.
func newBackendOf(t testing.TB, v netfilter.Variant, ipvs bool, families ...netfilter.Family) (*Backend, *recorder) {
	t.Helper()
	mustBePrivate(t)
	r := &recorder{Handler: slog.NewTextHandler(testWriter{t}, nil), t: t, inputs: new([]string)}
	b, err := New(t.Context(), Config{
		Families: families, Variant: v, MasqueradeBit: 14, IPVS: ipvs,
		Log: slog.New(r),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, r
}

type testWriter struct{ testing.TB }

func (w testWriter) Write(b []byte) (int, error) {
	w.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// program writes a shell script to a folder and returns its path.
func program(t testing.TB, dir, name, script string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t testing.TB, line string) string {
	t.Helper()
	mustBePrivate(t)
	out, err := exec.Command("sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

func trySync(t testing.TB, b *Backend, rs rules.Ruleset, verify bool) (rules.Changes, error) {
	t.Helper()
	mustBePrivate(t)
	return b.Sync(context.Background(), rs, verify)
}

func mustSync(t testing.TB, b *Backend, rs rules.Ruleset, verify bool) rules.Changes {
	t.Helper()
	c, err := trySync(t, b, rs, verify)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func saved(t testing.TB, v netfilter.Variant, f netfilter.Family) netfilter.Saved {
	t.Helper()
	mustBePrivate(t)
	s, err := netfilter.Parse(strings.NewReader(save(t, v, f)), f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// services are n ordinary Services with some endpoints each.
func services(n, endpoints int) []*rules.Service {
	var list []*rules.Service
	for i := range n {
		list = append(list, service(i, endpoints, 0))
	}
	return list
}

// service is the i-th of services; another generation has another first endpoint.
func service(i, endpoints, generation int) *rules.Service {
	name := topology.ServicePortName{
		NamespacedName: types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("svc-%05d", i)},
		Port:           "http", Protocol: corev1.ProtocolTCP,
	}
	s := &rules.Service{Name: name}
	for _, ip6 := range []bool{false, true} {
		frontend := rules.Frontend{Addr: address(ip6, 96, i, 80), Kind: rules.ClusterIP, Verdict: rules.Reject}
		if endpoints > 0 {
			frontend.Routes = []rules.Route{{From: rules.Any, Set: len(s.Sets), Masquerade: rules.OffCluster}}
			set := rules.EndpointSet{}
			for e := range endpoints {
				at := i*endpoints + e
				if e == 0 {
					at += generation << 20
				}
				set.Endpoints = append(set.Endpoints, address(ip6, 128, at, 8080))
			}
			s.Sets = append(s.Sets, set)
		}
		s.Frontends = append(s.Frontends, frontend)
	}
	return s
}

// clusterChain returns the chain that chooses among the endpoints of a Service.
func clusterChain(s *rules.Service) string {
	return render.TrafficPolicyChain(netfilter.KubeNames, s.Name, rules.Cluster)
}

func address(ip6 bool, net byte, n int, port uint16) netip.AddrPort {
	a := [16]byte{0: 0xfd, 1: net, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}
	if ip6 {
		return netip.AddrPortFrom(netip.AddrFrom16(a), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, net + a[13], a[14], a[15]}), port)
}

// ruleset has Services on a node with a Pod range and NodePorts on all addresses.
func ruleset(list []*rules.Service) rules.Ruleset {
	return rules.Ruleset{
		Services:  list,
		NodePorts: rules.NodePortScope{IPv4: rules.ListenAddrs{All: true}, IPv6: rules.ListenAddrs{All: true}, Localhost: true},
		Local: rules.LocalDetector{Prefixes: []netip.Prefix{
			netip.MustParsePrefix("10.128.0.0/9"), netip.MustParsePrefix("fd80::/16"),
		}},
	}
}
