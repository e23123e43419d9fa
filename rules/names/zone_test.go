package names

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var config = Config{
	Domain: "Cluster.local", TTL: DefaultTTL,
	NameServer:  types.NamespacedName{Namespace: "kube-system", Name: "kube-dns"},
	ServerAddrs: []netip.Addr{netip.MustParseAddr("169.254.20.12")},
}

var (
	drawnNamespaces = []string{"shop", "prod"}
	drawnServices   = []string{"db", "web"}
	drawnHostnames  = []string{"db-0", "db-1", "web"}
	drawnAddrs      = []netip.Addr{
		netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("::ffff:10.0.0.2"), netip.MustParseAddr("fd00::1"),
	}
)

// drawService draws one of few Services, with few addresses, so that they meet.
func drawService(t *rapid.T) *dnsview.Names {
	svc := &dnsview.Names{Service: types.NamespacedName{
		Namespace: rapid.SampledFrom(drawnNamespaces).Draw(t, "namespace"), Name: rapid.SampledFrom(drawnServices).Draw(t, "name"),
	}}
	svc.Kind = rapid.SampledFrom([]dnsview.Kind{dnsview.ClusterIP, dnsview.Headless, dnsview.ExternalName}).Draw(t, "kind")
	addr := rapid.SampledFrom(drawnAddrs)
	switch svc.Kind {
	case dnsview.ClusterIP:
		svc.ClusterIPs = rapid.SliceOfNDistinct(addr, 1, 2, netip.Addr.Unmap).Draw(t, "cluster IPs")
	case dnsview.ExternalName:
		svc.ExternalName = "db.example.com"
	}
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{Hostname: rapid.SampledFrom(drawnHostnames).Draw(t, "hostname"), Addr: addr.Draw(t, "address")})
	}
	if rapid.Bool().Draw(t, "has alias") {
		svc.Aliases = []dnsview.Alias{{Alias: "grid-0", Hostname: rapid.SampledFrom(drawnHostnames).Draw(t, "alias of")}}
	}
	return svc
}

// everything is what a Zone says about all names and addresses that are drawn.
func everything(z *Zone) []string {
	said := []string{fmt.Sprint(z.Serial(), z.NameServers())}
	for _, namespace := range drawnNamespaces {
		for _, name := range []string{"", "db.", "web.", "db-0.db.", "db-1.db.", "web.db.", "grid-0.db.", "grid-0.web."} {
			records, _, exists := z.Lookup(name+namespace+".svc", WantServices, recordsMax, 0)
			said = append(said, fmt.Sprintf("%s%s: %v %v", name, namespace, exists, records))
		}
	}
	for _, addr := range drawnAddrs {
		said = append(said, fmt.Sprintf("%s: %v", addr, z.Reverse(addr)))
	}
	for _, svc := range z.View().Services {
		said = append(said, fmt.Sprintf("%v is %p, found as %p", svc.Service, svc, z.Service(svc.Service)))
	}
	return said
}

// TestUpdateEqualsNew: a Zone says the same, whether it was made at once or by changes, and the
// Zones before it stay as they were.
func TestUpdateEqualsNew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		services := map[types.NamespacedName]*dnsview.Names{}
		view := dnsview.View{Namespaces: []string{"shop"}}
		z := New(config, view, 0)
		for serial := range uint32(rapid.IntRange(1, 6).Draw(t, "changes")) {
			before, said := z, everything(z)
			c := Change{Serial: serial}
			changed := map[types.NamespacedName]bool{}
			for range rapid.IntRange(0, 3).Draw(t, "services") {
				if svc := drawService(t); !changed[svc.Service] {
					changed[svc.Service] = true
					c.Services = append(c.Services, svc)
					services[svc.Service] = svc
				}
			}
			gone := types.NamespacedName{Namespace: "shop", Name: rapid.SampledFrom(drawnServices).Draw(t, "removed")}
			if !changed[gone] {
				c.Removed = []types.NamespacedName{gone}
				delete(services, gone)
			}
			if rapid.Bool().Draw(t, "other namespaces") {
				view.Namespaces = rapid.SampledFrom([][]string{{}, {"shop"}, {"prod", "shop"}}).Draw(t, "namespaces")
				c.Namespaces = view.Namespaces
			}
			z = z.Update(c)
			view.Services = view.Services[:0]
			for _, svc := range services {
				view.Services = append(view.Services, svc)
			}
			slices.SortFunc(view.Services, dnsview.Compare)
			if got := z.View(); !slices.Equal(got.Services, view.Services) || !slices.Equal(got.Namespaces, view.Namespaces) {
				t.Fatalf("the Zone of %+v is that of %+v", view, got)
			}
			if got, want := everything(z), everything(New(config, view, serial)); !slices.Equal(got, want) {
				t.Fatalf("after changes:\n%q\nmade at once:\n%q", got, want)
			}
			if again := everything(before); !slices.Equal(again, said) {
				t.Fatalf("an Update changed the Zone before it:\n%q\ninto\n%q", said, again)
			}
		}
	})
}

// TestNothingIsLeftOver: an index without Services is empty again, so that a Zone cannot grow by
// changes that undo each other.
func TestNothingIsLeftOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		svc := drawService(t)
		z := New(config, dnsview.View{}, 0).Update(Change{Services: []*dnsview.Names{svc}})
		z = z.Update(Change{Services: []*dnsview.Names{drawService(t)}, Removed: []types.NamespacedName{svc.Service}})
		for _, namespace := range drawnNamespaces {
			for _, name := range drawnServices {
				z = z.Update(Change{Removed: []types.NamespacedName{{Namespace: namespace, Name: name}}})
			}
		}
		if z.Service(svc.Service) != nil {
			t.Fatalf("%v is still there", svc.Service)
		}
		if n := size(z.services) + size(z.clusterIPs) + size(z.endpoints); n != 0 {
			t.Fatalf("%d keys are left without any Service", n)
		}
	})
}

func size[K comparable, V any](s sharded[K, V]) (n int) {
	for _, shard := range s.shards {
		n += len(shard)
	}
	return n
}

// alias is a closed headless Service of a StatefulSetGrid, whose Pod of this unit is db-beijing-0.
func alias() *dnsview.Names {
	ports := []dnsview.Port{{Name: "sql", Protocol: "TCP", Number: 5432}}
	return &dnsview.Names{
		Service: types.NamespacedName{Namespace: "shop", Name: "db"}, Kind: dnsview.Headless,
		Endpoints: []dnsview.Endpoint{
			{Hostname: "db-beijing-0", Addr: netip.MustParseAddr("10.0.0.1"), Ports: ports},
			{Hostname: "db-beijing-0", Addr: netip.MustParseAddr("fd00::1"), Ports: ports},
			{Hostname: "db-9", Addr: netip.MustParseAddr("10.0.0.9"), Ports: ports},
		},
		Aliases: []dnsview.Alias{{Alias: "db-0", Hostname: "db-beijing-0"}, {Alias: "db-1", Hostname: "db-beijing-1"}, {Alias: "db-9", Hostname: "db-beijing-0"}},
	}
}

// TestAlias: an alias has the addresses and ports of the endpoint, under its own name. An address
// has the hostname. An alias without an endpoint does not exist, and a hostname goes before one.
func TestAlias(t *testing.T) {
	z := New(config, dnsview.View{Services: []*dnsview.Names{alias()}, Namespaces: []string{"shop"}}, 0)
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	for _, c := range []struct {
		name   string
		want   Want
		ours   []Record
		exists bool
	}{
		{"db-0.db.shop.svc", WantIPv4, []Record{{Addr: v4, Port: 5432}}, true},
		{"db-0.db.shop.svc", WantIPv6, []Record{{Addr: v6, Port: 5432}}, true},
		{"db-0.db.shop.svc", WantServices, []Record{{"db-0.db.shop.svc", v4, "", 5432}, {"db-0.db.shop.svc", v6, "", 5432}}, true},
		{"db-beijing-0.db.shop.svc", WantServices, []Record{{"db-beijing-0.db.shop.svc", v4, "", 5432}, {"db-beijing-0.db.shop.svc", v6, "", 5432}}, true},
		{"db-1.db.shop.svc", WantIPv4, nil, false},
		{"db-9.db.shop.svc", WantIPv4, []Record{{Addr: netip.MustParseAddr("10.0.0.9"), Port: 5432}}, true},
		{"db-9.db.shop.svc", WantIPv6, nil, true},
	} {
		if got, _, exists := z.Lookup(c.name, c.want, recordsMax, 0); exists != c.exists || !reflect.DeepEqual(got, c.ours) {
			t.Errorf("%s: got %v %v, want %v %v", c.name, exists, got, c.exists, c.ours)
		}
	}
	if got, want := z.Reverse(v4), []string{"db-beijing-0.db.shop.svc.cluster.local."}; !slices.Equal(got, want) {
		t.Errorf("the address has the names %q, want %q", got, want)
	}
}

// TestOneClusterIPOfTwo: of two Services with one cluster IP the first by namespace and name has
// the address, in whichever order they came.
func TestOneClusterIPOfTwo(t *testing.T) {
	addr := netip.MustParseAddr("10.96.0.1")
	var services []*dnsview.Names
	for _, name := range []types.NamespacedName{{Namespace: "b", Name: "a"}, {Namespace: "a", Name: "z"}, {Namespace: "a", Name: "c"}} {
		services = append(services, &dnsview.Names{Service: name, Kind: dnsview.ClusterIP, ClusterIPs: []netip.Addr{addr}})
	}
	for range 2 {
		z := New(config, dnsview.View{Services: services}, 0)
		if got := z.Reverse(addr); !slices.Equal(got, []string{"c.a.svc.cluster.local."}) {
			t.Errorf("the address has the names %q", got)
		}
		slices.Reverse(services)
	}
}

// TestBounds: no Service makes an answer larger than a message, or a lookup long, and no namespace
// pushes out the names that another gives an address.
func TestBounds(t *testing.T) {
	shared := netip.MustParseAddr("10.0.0.1")
	var ports []dnsview.Port
	for i := range 20_000 {
		ports = append(ports, dnsview.Port{Name: fmt.Sprintf("p%d", i), Protocol: "TCP", Number: int32(i + 1)})
	}
	large := &dnsview.Names{Service: types.NamespacedName{Namespace: "a", Name: "large"}, Kind: dnsview.Headless}
	for i := range 6_000 {
		large.Endpoints = append(large.Endpoints, dnsview.Endpoint{Hostname: fmt.Sprintf("h%d", i), Addr: shared, Ports: ports})
	}
	small := &dnsview.Names{Service: types.NamespacedName{Namespace: "b", Name: "small"}, Kind: dnsview.Headless}
	small.Endpoints = []dnsview.Endpoint{{Hostname: "h", Addr: shared}}
	z := New(config, dnsview.View{Services: []*dnsview.Names{large, small}, Namespaces: []string{"a", "b"}}, 0)
	for _, want := range []Want{WantIPv4, WantServices} {
		if got, more, _ := z.Lookup("large.a.svc", want, recordsMax+1, 0); len(got) != recordsMax || !more {
			t.Errorf("%d records of kind %d, want %d", len(got), want, recordsMax)
		}
	}
	c := collection{question: question{port: "missing"}, limit: recordsMax}
	if c.service(z.mustHave(large.Service)); c.examined > stepsMax {
		t.Errorf("%d ports were examined, want at most %d", c.examined, stepsMax)
	}
	if got := z.Reverse(shared); len(got) != namesOfNamespaceMax+1 || got[namesOfNamespaceMax] != "h.small.b.svc.cluster.local." {
		t.Errorf("%d names, the last %q", len(got), got[len(got)-1])
	}
}

func (z *Zone) mustHave(name types.NamespacedName) *entry {
	e, _ := z.services.get(name)
	return e
}

// TestLookupStart: whatever start a lookup has, its records are those of start 0 in a circle, and
// each of them is the first one for equally many starts. A limit cuts the end off, and says so.
func TestLookupStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := [][]dnsview.Port{
			nil, {{Name: "http", Protocol: "TCP", Number: 80}}, {{Name: "sql", Protocol: "TCP", Number: 5432}, {Name: "http", Protocol: "TCP", Number: 81}},
		}
		svc := &dnsview.Names{Service: types.NamespacedName{Namespace: "shop", Name: "db"}}
		svc.Kind = rapid.SampledFrom([]dnsview.Kind{dnsview.ClusterIP, dnsview.Headless}).Draw(t, "kind")
		svc.ClusterIPs, svc.Ports = []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00::96")}, lists[2]
		for i := range rapid.IntRange(1, 6).Draw(t, "endpoints") {
			addr := rapid.SampledFrom([]netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i)})}).Draw(t, "address")
			svc.Endpoints = append(svc.Endpoints, dnsview.Endpoint{
				Hostname: rapid.SampledFrom(drawnHostnames).Draw(t, "hostname"), Addr: addr, Ports: rapid.SampledFrom(lists).Draw(t, "ports"),
			})
		}
		z := New(config, dnsview.View{Services: []*dnsview.Names{svc}, Namespaces: []string{"shop"}}, 0)
		name := rapid.SampledFrom([]string{"db.shop.svc", "_http._tcp.db.shop.svc", "db-0.db.shop.svc"}).Draw(t, "name")
		want := rapid.SampledFrom([]Want{WantIPv4, WantIPv6, WantServices}).Draw(t, "want")
		all, _, exists := z.Lookup(name, want, recordsMax, 0)
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		for start := range 2*len(all) + 1 {
			var circle []Record
			if n := len(all); n > 0 {
				circle = slices.Concat(all[start%n:], all[:start%n])[:min(n, limit)]
			}
			got, more, found := z.Lookup(name, want, limit, uint64(start))
			if found != exists || more != (len(all) > limit) || !reflect.DeepEqual(got, circle) {
				t.Fatalf("from %d on: %v %v, want %v %v", start, got, found, circle, exists)
			}
		}
	})
}
