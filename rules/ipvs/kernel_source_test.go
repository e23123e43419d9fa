package ipvs

import (
	"net/netip"
	"strings"
	"testing"
)

// TestLeaveFromElsewhere: the machine's own connections leave from another address than the one that they
// go to, which stays local; when the address goes, nothing of it is left. A new process knows what the one
// before it did.
func TestLeaveFromElsewhere(t *testing.T) {
	enter(t)
	run(t, "", "ip", "link", "add", "up0", "type", "dummy")
	run(t, "", "ip", "link", "set", "up0", "up")
	for _, a := range []string{"192.168.10.1/24", "fd00:18::1/64"} {
		run(t, "", "ip", "addr", "add", a, "dev", "up0", "nodad")
	}
	for _, address := range []struct{ vip, near, from string }{
		{"10.96.0.1", "192.168.10.7", "192.168.10.1"},
		{"fd00:96::1", "fd00:18::7", "fd00:18::1"},
	} {
		vip, near := netip.MustParseAddr(address.vip), netip.MustParseAddr(address.near)
		k := open(t)
		must(t, k.findLink())
		must(t, k.ensureLink())
		must(t, k.addAddress(vip))
		leaves(t, address.vip, address.vip)
		must(t, k.leaveFromElsewhere(vip, near))
		leaves(t, address.vip, address.from)

		again := open(t)
		must(t, again.findLink())
		must(t, again.leaveFromElsewhere(vip, near))
		leaves(t, address.vip, address.from)
		must(t, again.deleteAddress(vip))
		if all := run(t, "", "ip", "route", "show", "table", "local") + run(t, "", "ip", "-6", "route", "show", "table", "local"); strings.Contains(all, address.vip) {
			t.Errorf("a route to %s is left:\n%s", vip, all)
		}
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
