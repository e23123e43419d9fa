package clusterzone

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"

	"gridproxy/rules/names"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
)

// The one TXT record: the version of the DNS specification of Kubernetes.
const (
	versionName = "dns-version"
	version     = "1.1.0"
	versionTTL  = 28800 // seconds
)

// serversName is the name that CoreDNS asks for the servers of a zone, relative to it.
const serversName = "ns.dns."

var errNoName = errors.New("the name does not exist")

// backend gives CoreDNS the records of one query.
type backend struct {
	zone     *names.Zone
	reverse  bool // the query is in a reverse zone, where only addresses have records
	limit    int  // of records that are looked up for one name
	random   func() uint64
	more     bool // than limit records exist
	upstream Upstreamer
}

var _ plugin.ServiceBackend = (*backend)(nil)

// Services returns the records of the name and type that the query in the state asks for. It
// returns errNoName if the name does not exist.
func (b *backend) Services(ctx context.Context, state request.Request, exact bool, _ plugin.Options) ([]msg.Service, error) {
	name, qtype := state.Name(), state.QType()
	switch {
	case qtype == dns.TypeTXT:
		return b.text(ctx, state, exact)
	case qtype == dns.TypeNS:
		return b.servers(nil), nil
	case !b.reverse && strings.HasPrefix(name, serversName+b.zone.Domain()):
		return b.servers(func(a netip.Addr) bool {
			return qtype == dns.TypeA && a.Is4() || qtype == dns.TypeAAAA && a.Is6()
		}), nil
	}
	records, err := b.Records(ctx, state, exact)
	if qtype == dns.TypeSRV && len(records) == 1 && isAlias(records[0]) { // has no ports
		return nil, err
	}
	return records, err
}

// text returns the version of the specification for its name. Other names have no text. It
// returns errNoName for those that have no other records either, as CoreDNS does.
func (b *backend) text(ctx context.Context, state request.Request, exact bool) ([]msg.Service, error) {
	if !b.reverse && b.relative(state) == versionName {
		return []msg.Service{{Text: version, TTL: versionTTL}}, nil
	}
	if records, err := b.Records(ctx, state, exact); len(records) == 0 || err != nil {
		return nil, errNoName
	}
	return nil, nil
}

// servers returns the servers of the cluster domain whose addresses are wanted; with a nil
// function it returns all.
func (b *backend) servers(wanted func(netip.Addr) bool) []msg.Service {
	var found []msg.Service
	for _, s := range b.zone.NameServers() {
		if wanted == nil || wanted(s.Addr) {
			found = append(found, msg.Service{Host: s.Addr.String(), Key: b.key(s.Name, b.zone.Domain()), TTL: b.zone.TTL()})
		}
	}
	return found
}

// Records returns the records of the name in the state, in random order; errNoName if there is
// no such name. It sets b.more if it leaves out records, because there are more than b.limit.
func (b *backend) Records(_ context.Context, state request.Request, _ bool) ([]msg.Service, error) {
	name := b.relative(state)
	if b.reverse {
		if name == "" {
			return nil, nil
		}
		return nil, errNoName
	}
	records, more, exists := b.zone.Lookup(name, wanted(state.QType()), b.limit, b.random())
	b.more = b.more || more
	if !exists {
		return nil, errNoName
	}
	// A client that gets no answer from the first record takes the second: each is so equally often.
	rand.New(source(b.random)).Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	services := make([]msg.Service, len(records))
	for i, r := range records {
		services[i] = msg.Service{Host: r.Target, Port: int(r.Port), TTL: b.zone.TTL()}
		if r.Addr.IsValid() {
			services[i].Host = r.Addr.String()
		}
		if r.Owner != "" {
			services[i].Key = b.key(r.Owner, state.Zone)
		}
	}
	return services, nil
}

// source is a function as math/rand takes it.
type source func() uint64

// Uint64 returns the next random number.
func (s source) Uint64() uint64 { return s() }

func wanted(qtype uint16) names.Want {
	switch qtype {
	case dns.TypeA:
		return names.WantIPv4
	case dns.TypeAAAA:
		return names.WantIPv6
	case dns.TypeSRV:
		return names.WantServices
	}
	return names.WantFirst
}

// relative returns the name in the state without the zone and the dot before it.
func (b *backend) relative(state request.Request) string {
	name := state.Name()
	return strings.TrimSuffix(name[:max(0, len(name)-len(state.Zone))], ".")
}

// key returns the path that CoreDNS turns back into the name. The path consists of labels, and
// one label may be a whole name: CoreDNS joins them by dots.
func (b *backend) key(name, zone string) string { return "/c/" + name + "." + zone }

// isAlias reports whether a record is that of a Service of kind ExternalName.
func isAlias(s msg.Service) bool {
	t, _ := s.HostType()
	return t == dns.TypeCNAME
}

// Reverse returns the names of the address that the name in the state spells, or errNoName.
func (b *backend) Reverse(ctx context.Context, state request.Request, exact bool, _ plugin.Options) ([]msg.Service, error) {
	addr, err := netip.ParseAddr(dnsutil.ExtractAddressFromReverse(state.Name()))
	if err != nil {
		_, err := b.Records(ctx, state, exact)
		return nil, err
	}
	found := b.zone.Reverse(addr)
	if len(found) == 0 {
		return nil, errNoName
	}
	services := make([]msg.Service, len(found))
	for i, name := range found {
		services[i] = msg.Service{Host: name, TTL: b.zone.TTL()}
	}
	return services, nil
}

// Lookup looks up the target of an alias that is outside the cluster domain. It marks the query as
// one that this server asks itself.
func (b *backend) Lookup(ctx context.Context, state request.Request, name string, qtype uint16) (*dns.Msg, error) {
	loop, _ := ctx.Value(dnsserver.LoopKey{}).(int)
	ctx = context.WithValue(ctx, dnsserver.LoopKey{}, loop+1)
	return b.upstream.Lookup(ctx, state, name, qtype)
}

// IsNameError reports whether err says that a name does not exist.
func (b *backend) IsNameError(err error) bool { return errors.Is(err, errNoName) }

// Serial returns the serial number of the SOA record.
func (b *backend) Serial(request.Request) uint32 { return b.zone.Serial() }

// MinTTL returns for how many seconds a client may remember that a record does not exist.
func (b *backend) MinTTL(request.Request) uint32 { return b.zone.TTL() }
