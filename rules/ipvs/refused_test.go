package ipvs

import (
	"context"
	"os"
	"strings"
	"testing"

	"gridproxy/rules"
)

// recordingTables remembers what it was last asked for.
type recordingTables struct {
	emptyTables
	last *rules.Ruleset
}

func (r recordingTables) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	*r.last = want
	return r.emptyTables.Sync(ctx, want, verify)
}

// chains are the addresses that the chains were asked for.
func (r recordingTables) chains() string {
	var all []string
	for _, s := range r.last.Services {
		for _, f := range s.Frontends {
			all = append(all, f.Addr.String())
		}
	}
	return strings.Join(all, " ")
}

// TestRefused: what the kernel does not take as a virtual server is in chains, until it does.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name          string
		refuse, allow func()
		chains        string
		words         string // of the kernel
	}{
		{
			"a set is full",
			func() { run(t, "", "ipset", "create", "KUBE-CLUSTER-IP", "hash:ip,port", "maxelem", "1") },
			func() { run(t, "", "ipset", "destroy") },
			"10.96.0.2:80", "the set is full",
		},
		{
			"no IPv6 on the link",
			func() { run(t, "", "ip", "link", "add", Link, "type", "dummy"); disableIPv6(t, "1") },
			func() { disableIPv6(t, "0") },
			"[fd00:96::1]:80 [fd00:96::2]:80", "permission denied",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tables := recordingTables{last: &rules.Ruleset{}}
			m := newMachine(t, BackendConfig{Tables: tables})
			c.refuse()
			rs := ruleset(webService(1, "10.180.0.1:80", "[fd00:180::1]:80"), webService(2, "10.180.0.1:80", "[fd00:180::1]:80"))
			m.sync(rs, true)
			if got := tables.chains(); got != c.chains {
				t.Fatalf("in chains: %s, want %s\n%s", got, c.chains, m.log.String())
			}
			refused := m.Status().Refused
			if want := strings.Count(c.chains, " ") + 1; refused != want {
				t.Errorf("%d refused, want %d", refused, want)
			}
			for key := range m.holds().Servers {
				if strings.Contains(c.chains, key.Addr.String()) {
					t.Errorf("server %s is there", key)
				}
			}
			if warned := strings.Count(m.log.String(), "the kernel refuses a virtual server"); warned != refused || !strings.Contains(m.log.String(), c.words) {
				t.Errorf("%d warnings:\n%s", warned, m.log.String())
			}
			before, log := tables.last.Services, m.log.String()
			for _, verify := range []bool{true, false, true} {
				m.sync(rs, verify)
				for i, s := range tables.last.Services {
					if s != before[i] {
						t.Errorf("verify %t: the chains of %v are another pointer", verify, s.Name)
					}
				}
			}
			if m.log.String() != log {
				t.Errorf("it is told again:\n%s", m.log.String())
			}
			c.allow()
			m.sync(rs, true)
			m.expect(m.wants(rs), "when the kernel takes it")
			if got := tables.chains(); got != "" || m.Status().Refused != 0 {
				t.Errorf("in chains: %s; %+v", got, m.Status())
			}
		})
	}
}

// disableIPv6 makes the link refuse addresses of IPv6, or not.
func disableIPv6(t *testing.T, to string) {
	t.Helper()
	must(t, os.WriteFile("/proc/sys/net/ipv6/conf/"+Link+"/disable_ipv6", []byte(to), 0))
}
