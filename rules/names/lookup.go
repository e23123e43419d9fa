package names

import (
	"net/netip"
	"sort"
	"strings"

	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// MaxRecords is the most records that one lookup returns. A message of 64 KiB, the largest there
// is, has no room for more than 4,095 records of 16 bytes, the smallest: with one more it is
// truncated, and says so.
const MaxRecords = 4096

// maxExamined is how many pairs of an endpoint and a port one lookup looks at: a Service of 1,000
// endpoints with 65 ports each. Slices may have thousands of ports.
const maxExamined = 1 << 16

// NoPort is the Port of a Record of something that has no port.
const NoPort = -1

// Want says which records of a name are wanted.
type Want int

// What may be wanted of a name.
const (
	WantIPv4     Want = iota // one Record for each IPv4 address
	WantIPv6                 // one Record for each IPv6 address
	WantServices             // one Record for each address and port, with Owner
	WantFirst                // one Record of any kind, or none
)

// Record is an address of a name, or the name outside the cluster domain that it is an alias of.
type Record struct {
	Owner  string     // relative to the cluster domain: of the Service, of its endpoint or of a Pod
	Addr   netip.Addr // invalid if there is a Target
	Target string     // of a Service of kind ExternalName
	Port   int32      // NoPort if there is none; 0 is that of Pods
}

// Lookup returns the records of a name that is relative to the cluster domain, in lower case and
// without a dot at its end. A name may exist without records.
func (z *Zone) Lookup(name string, want Want) (records []Record, exists bool) {
	q, ok := parse(name)
	if !ok {
		return nil, false
	}
	if q.namespace == "" {
		return nil, true
	}
	if _, found := z.namespaces[q.namespace]; !found {
		return nil, false
	}
	if q.service == "" {
		return nil, true
	}
	c := collection{question: q, want: want}
	if q.tree == podTree {
		c.pod()
	} else if e, found := z.services.get(types.NamespacedName{Namespace: q.namespace, Name: q.service}); found {
		c.service(e)
	}
	return c.records, c.exists
}

// collection is the records of a question in the making.
type collection struct {
	question
	want     Want
	records  []Record
	exists   bool
	examined int
}

// full says that no further record may change the answer, or is allowed in it.
func (c *collection) full() bool {
	return c.examined >= maxExamined || len(c.records) >= MaxRecords || c.want == WantFirst && len(c.records) > 0
}

func (c *collection) add(owner string, addr netip.Addr, port int32) {
	c.exists = true
	if c.want == WantIPv4 && !addr.Is4() || c.want == WantIPv6 && addr.Is4() {
		return
	}
	c.records = append(c.records, Record{Owner: owner, Addr: addr, Port: port})
}

// pod adds the address that the name of a Pod spells. Such a name is never checked against the Pods
// that exist, nor is what precedes it: CoreDNS calls that `pods insecure`.
func (c *collection) pod() {
	separator := ":"
	if strings.Count(c.question.service, "-") == 3 && !strings.Contains(c.question.service, "--") {
		separator = "."
	}
	addr, err := netip.ParseAddr(strings.ReplaceAll(c.question.service, "-", separator))
	if err != nil || addr.Zone() != "" {
		return
	}
	owner := ""
	if c.want == WantServices {
		owner = c.question.service + "." + c.namespace + "." + podTree
	}
	c.add(owner, addr.Unmap(), 0)
}

func (c *collection) service(e *entry) {
	switch {
	case e.Kind == dnsview.ExternalName:
		if c.endpoint == "" && c.port == "" && c.protocol == "" && isTarget(e.ExternalName) {
			c.exists = true
			c.records = append(c.records, Record{Owner: e.name, Target: e.ExternalName, Port: NoPort})
		}
	case c.endpoint != "":
		c.endpointsNamed(e)
	case e.Kind == dnsview.Headless:
		for i := range e.Endpoints {
			if c.full() {
				return
			}
			c.addEndpoint(e, &e.Endpoints[i], e.Endpoints[i].Hostname)
		}
	default:
		c.eachPort(e.Ports, func(port int32) {
			for _, addr := range e.ClusterIPs {
				c.add(e.name, addr.Unmap(), port)
			}
		})
	}
}

// isTarget says whether a Service may be an alias of that: an address is none.
func isTarget(name string) bool {
	if name == "" {
		return false
	}
	addr, err := netip.ParseAddr(name)
	return err != nil || addr.Zone() != ""
}

// endpointsNamed adds the endpoints of a hostname, or of an alias that is no hostname.
func (c *collection) endpointsNamed(e *entry) {
	if c.endpointsOf(e, c.endpoint) {
		return
	}
	i, found := sort.Find(len(e.Aliases), func(i int) int { return strings.Compare(c.endpoint, e.Aliases[i].Alias) })
	if found {
		c.endpointsOf(e, e.Aliases[i].Hostname)
	}
}

// endpointsOf adds the endpoints of a hostname, and says whether there are any. They belong to the
// name that was asked for.
func (c *collection) endpointsOf(e *entry, hostname string) bool {
	first, found := sort.Find(len(e.byHostname), func(i int) int {
		return strings.Compare(hostname, e.hostname(e.byHostname[i]))
	})
	for _, i := range e.byHostname[first:] {
		if e.hostname(i) != hostname || c.full() {
			break
		}
		c.addEndpoint(e, &e.Endpoints[i], c.endpoint)
	}
	return found
}

// addEndpoint adds an endpoint, with each port that is wanted.
func (c *collection) addEndpoint(e *entry, endpoint *dnsview.Endpoint, hostname string) {
	owner, added := "", false
	c.eachPort(endpoint.Ports, func(port int32) {
		if c.want == WantServices && owner == "" {
			owner = hostname + "." + e.name
		}
		if c.want == WantServices || !added { // an address has no port
			c.add(owner, endpoint.Addr.Unmap(), port)
		}
		added = true
	})
}

// eachPort calls f for each port that the question asks for. What has no port answers as one
// without name and number.
func (c *collection) eachPort(ports []dnsview.Port, f func(number int32)) {
	if len(ports) == 0 {
		ports = []dnsview.Port{{}}
	}
	for _, p := range ports {
		if c.full() {
			return
		}
		c.examined++
		if !asksFor(c.port, p.Name) || !asksFor(c.protocol, p.Protocol) {
			continue
		}
		if p.Number < 1 {
			p.Number = NoPort
		}
		f(p.Number)
		if c.want != WantServices {
			return
		}
	}
}

// asksFor says whether a part of a question asks for a value. An empty part asks for any.
func asksFor(part, value string) bool { return part == "" || strings.EqualFold(part, value) }
