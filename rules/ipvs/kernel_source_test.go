package ipvs

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
)

// dualStack makes a link with an address of each family, and maybe the default routes.
func dualStack(t *testing.T, defaults bool) {
	t.Helper()
	enter(t)
	run(t, "", "ip", "link", "add", "up0", "type", "dummy")
	run(t, "", "ip", "link", "set", "up0", "up")
	for _, a := range []string{"192.168.10.1/24", "fd00:18::1/64"} {
		run(t, "", "ip", "addr", "add", a, "dev", "up0", "nodad")
	}
	if defaults {
		run(t, "", "ip", "route", "add", "default", "dev", "up0")
		run(t, "", "ip", "-6", "route", "add", "default", "dev", "up0")
	}
}

// localRoutes are those of both families that name an address.
func localRoutes(t *testing.T, to string) []string {
	t.Helper()
	var found []string
	all := run(t, "", "ip", "route", "show", "table", "local") + run(t, "", "ip", "-6", "route", "show", "table", "local")
	for line := range strings.Lines(all) {
		if strings.Contains(line, to+" ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// TestLeaveFrom: the machine's own connections leave from another address than the one that they go
// to, which stays local; when the address goes, nothing of it is left, and what others had stays. A
// new process knows what the one before it did.
func TestLeaveFrom(t *testing.T) {
	for _, theirs := range []bool{false, true} {
		dualStack(t, false)
		for _, address := range []struct{ vip, near, from string }{
			{"10.96.0.1", "192.168.10.7", "192.168.10.1"},
			{"fd00:96::1", "fd00:18::7", "fd00:18::1"},
		} {
			vip, near := netip.MustParseAddr(address.vip), netip.MustParseAddr(address.near)
			if theirs { // as the agents of some clouds do
				run(t, "", "ip", "route", "add", "local", address.vip, "dev", "up0", "table", "local")
			}
			k := open(t)
			must(t, k.findLink())
			must(t, k.ensureLink())
			must(t, k.addAddress(vip))
			if !theirs {
				leaves(t, address.vip, address.vip)
			}
			source, err := k.sourceTo(vip, near, map[netip.Addr]struct{}{vip: {}})
			must(t, err)
			if source != netip.MustParseAddr(address.from) {
				t.Errorf("to %s from %s, want %s", vip, source, address.from)
			}
			before := localRoutes(t, address.vip)
			must(t, k.addSourceRoute(vip, source))
			leaves(t, address.vip, address.from)
			t.Logf("local routes before: %q\nafter: %q", before, localRoutes(t, address.vip))

			again := open(t)
			must(t, again.findLink())
			must(t, again.addSourceRoute(vip, source))
			leaves(t, address.vip, address.from)
			must(t, again.deleteAddress(vip))
			left := localRoutes(t, address.vip)
			if ok := !theirs && len(left) == 0 || theirs && len(left) == 1 && strings.Contains(left[0], "dev up0"); !ok {
				t.Errorf("routes to %s afterwards, with one of another program's %t: %q", vip, theirs, left)
			}
		}
	}
}

// TestSourceTo: the address that the machine takes on the way out, not the one next to an endpoint,
// and never one of a Service.
func TestSourceTo(t *testing.T) {
	dualStack(t, true)
	run(t, "", "ip", "link", "add", "cni0", "type", "dummy")
	run(t, "", "ip", "link", "set", "cni0", "up")
	run(t, "", "ip", "addr", "add", "10.180.0.254/24", "dev", "cni0")
	k := open(t)
	vip, onLink := netip.MustParseAddr("10.96.0.1"), map[netip.Addr]struct{}{}
	must(t, k.findLink())
	must(t, k.ensureLink())
	for a, i := vip, 0; i < 3; a, i = a.Next(), i+1 {
		must(t, k.addAddress(a))
		onLink[a] = struct{}{}
	}
	source, err := k.sourceTo(vip, netip.MustParseAddr("10.180.0.1"), onLink)
	must(t, err)
	if want := netip.MustParseAddr("192.168.10.1"); source != want {
		t.Errorf("to %s from %s, want %s", vip, source, want)
	}
	run(t, "", "ip", "route", "replace", "default", "dev", "up0", "src", "10.96.0.2")
	source, err = k.sourceTo(vip, netip.MustParseAddr("10.180.0.1"), onLink)
	must(t, err)
	if want := netip.MustParseAddr("10.180.0.254"); source != want {
		t.Errorf("where the way out is from an address of a Service: to %s from %s, want %s", vip, source, want)
	}
}

// TestLeaveFromElsewhere: also where an address goes to the chains although IPVS mode goes on; but
// not an address that the machine has on a link of its own.
func TestLeaveFromElsewhere(t *testing.T) {
	dualStack(t, true)
	m := &machine{t: t, clock: time.Now()}
	t.Cleanup(func() { m.kernel.close() })
	m.restart()
	services := ruleset(webService(1, "10.180.0.1:80", "[fd00:18::7]:80"), webService(2, "10.180.0.1:80"), webService(3, "10.180.0.1:80"))
	m.sync(services, false)

	m.kernel.close()
	m.config.Exclude = []netip.Prefix{netip.MustParsePrefix("10.96.0.1/32"), netip.MustParsePrefix("10.96.0.2/32"), netip.MustParsePrefix("fd00:96::1/128")}
	m.config.Tables = failingTables{} // so that everything stays
	m.Backend = nil
	m.restart()
	services.HostAddrs = []netip.Addr{netip.MustParseAddr("10.96.0.2")}
	if _, err := m.Sync(t.Context(), services, false); err == nil {
		t.Fatal("no error of chains that fail")
	}
	leaves(t, "10.96.0.1", "192.168.10.1")
	leaves(t, "fd00:96::1", "fd00:18::1")
	leaves(t, "10.96.0.2", "10.96.0.2")
	leaves(t, "10.96.0.3", "10.96.0.3")
	if d := m.planner.movedToChains(); len(d) != 3 {
		t.Errorf("translated addresses %v, want 3", d)
	}
}

// TestTranslated: of a Service that goes nothing is translated.
func TestTranslated(t *testing.T) {
	var p planner
	var c Compiler
	sync := func(rs rules.Ruleset, cfg Config) map[netip.Addr]netip.Addr {
		p.setDesired(c.Compile(rs, cfg))
		for _, op := range p.grow(limits{}) {
			p.done(op)
		}
		found := p.movedToChains()
		for _, op := range p.shrink(limits{}) {
			p.done(op)
		}
		return found
	}
	two := ruleset(webService(1, "10.180.0.1:80"), webService(2, "10.180.0.9:80", "10.180.0.2:80"))
	sync(two, Config{})
	if got := sync(ruleset(two.Services[1]), Config{}); len(got) != 0 {
		t.Errorf("a Service has gone: %v", got)
	}
	got := sync(ruleset(two.Services[1]), Config{Exclude: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}})
	if want := netip.MustParseAddr("10.180.0.2"); len(got) != 1 || got[netip.MustParseAddr("10.96.0.2")] != want {
		t.Errorf("an address goes to the chains: %v, want it with %s", got, want)
	}
}

// leaves wants the machine's own connections to an address to be local, and to leave from another.
func leaves(t *testing.T, to, from string) {
	t.Helper()
	route := run(t, "", "ip", "route", "get", to)
	if !strings.Contains(route, "local "+to) || !strings.Contains(route, "src "+from+" ") {
		t.Errorf("to %s goes %q, want it local and from %s", to, route, from)
	}
}
