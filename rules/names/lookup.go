package names

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// LimitFor returns how many records are looked up for a message of so many bytes: more than fit.
func LimitFor(size int) int { return min(size/minRecordSize+1, recordsMax) }

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
	Port   int32      // or NoPort; 0 is that of Pods
}

// Lookup returns the records of a name that is relative to the cluster domain, in lower case and
// without a dot at its end. A name may exist without records. The records begin with number start,
// modulo their count, and go on with the first one after the last. So a random start makes each
// record equally often the first one, and one of those that fit into a message. There are at most
// limit records, and at most recordsMax; more reports whether others were left out for that.
func (z *Zone) Lookup(name string, want Want, limit int, start uint64) (records []Record, more, exists bool) {
	q, ok := parse(name)
	if !ok {
		return nil, false, false
	}
	if q.namespace == "" {
		return nil, false, true
	}
	if _, found := z.namespaces[q.namespace]; !found {
		return nil, false, false
	}
	if q.service == "" {
		return nil, false, true
	}
	c := collection{question: q, want: want, limit: min(limit, recordsMax), start: start}
	if want == WantFirst {
		c.limit = 1
	}
	if q.tree == podTree {
		c.pod()
	} else if e, found := z.services.get(types.NamespacedName{Namespace: q.namespace, Name: q.service}); found {
		c.service(e)
	}
	return c.records, c.more, c.exists
}

// unnamedPort takes the place of an empty list: it has one port without name and number.
var unnamedPort = []dnsview.Port{{}}

// collection is the records of a question in the making.
type collection struct {
	question
	want     Want
	limit    int    // of records
	start    uint64 // the number of the first record
	records  []Record
	more     bool // than limit
	exists   bool
	examined int

	list  *dnsview.Port // the first of the list that was examined last, which identifies it
	ports []int32       // the numbers of those in the list that the question asks for
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
	c.exists = true
	if c.wants(addr.Unmap()) {
		c.records = []Record{{Owner: owner, Addr: addr.Unmap()}}
	}
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
		c.collect(e, len(e.Endpoints), func(i int) *dnsview.Endpoint { return &e.Endpoints[i] })
	default:
		c.collect(e, len(e.clusterIPs), func(i int) *dnsview.Endpoint { return &e.clusterIPs[i] })
	}
}

// isTarget reports whether a Service may be an alias of name. It may not be one of an address.
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

// endpointsOf adds the endpoints of a hostname, and reports whether there are any. They belong
// to the name that was asked for.
func (c *collection) endpointsOf(e *entry, hostname string) bool {
	compare := func(i int32, hostname string) int { return strings.Compare(e.hostname(i), hostname) }
	first, found := slices.BinarySearchFunc(e.byHostname, hostname, compare)
	all := e.byHostname[first:]
	all = all[:sort.Search(len(all), func(i int) bool { return e.hostname(all[i]) != hostname })]
	c.collect(e, len(all), func(i int) *dnsview.Endpoint { return &e.Endpoints[all[i]] })
	return found
}

// collect adds the records of some of a Service's endpoints, or of its cluster IPs, which have no
// hostname. It counts all records first, because each must be equally often the first one.
func (c *collection) collect(e *entry, n int, at func(int) *dnsview.Endpoint) {
	total := 0
	for i := range n {
		if c.examined >= stepsMax || c.want == WantFirst && total > 0 {
			n = i // the others are left out
			break
		}
		total += len(c.portsOf(at(i)))
	}
	if total == 0 {
		return
	}
	c.more = total > c.limit
	skip, missing := int(c.start%uint64(total)), min(total, c.limit)
	c.records = make([]Record, 0, missing)
	for i := 0; missing > 0; i = (i + 1) % n {
		endpoint := at(i)
		ports := c.portsOf(endpoint)
		if skip >= len(ports) {
			skip -= len(ports)
			continue
		}
		ports = ports[skip:min(len(ports), skip+missing)]
		skip, missing = 0, missing-len(ports)
		owner := c.ownerOf(e, endpoint)
		for _, port := range ports {
			c.records = append(c.records, Record{Owner: owner, Addr: endpoint.Addr.Unmap(), Port: port})
		}
	}
}

// ownerOf returns the name that an endpoint is listed with; "" if no name is listed.
func (c *collection) ownerOf(e *entry, endpoint *dnsview.Endpoint) string {
	hostname := cmp.Or(c.endpoint, endpoint.Hostname)
	switch {
	case c.want != WantServices:
		return ""
	case hostname == "": // of a cluster IP
		return e.name
	}
	return hostname + "." + e.name
}

// portsOf returns the ports of the records that an endpoint adds: each that the question asks for,
// or one of these if addresses are wanted, because an address has no port.
func (c *collection) portsOf(e *dnsview.Endpoint) []int32 {
	ports := e.Ports
	if len(ports) == 0 {
		ports = unnamedPort
	}
	c.examined++
	if c.list != &ports[0] {
		c.list, c.ports = &ports[0], c.matching(ports)
		c.examined += len(ports)
	}
	c.exists = c.exists || len(c.ports) > 0
	switch {
	case !c.wants(e.Addr.Unmap()):
		return nil
	case c.want != WantServices:
		return c.ports[:min(1, len(c.ports))]
	}
	return c.ports
}

// matching returns the numbers of the ports that the question asks for.
func (c *collection) matching(ports []dnsview.Port) (numbers []int32) {
	for _, p := range ports {
		if !asksFor(c.port, p.Name) || !asksFor(c.protocol, p.Protocol) {
			continue
		}
		if p.Number < 1 {
			p.Number = NoPort
		}
		numbers = append(numbers, p.Number)
	}
	return numbers
}

func (c *collection) wants(addr netip.Addr) bool {
	return c.want != WantIPv4 && c.want != WantIPv6 || addr.Is4() == (c.want == WantIPv4)
}

// asksFor reports whether a part of a question asks for value, in upper or lower case. An empty
// part asks for any value.
func asksFor(part, value string) bool { return part == "" || strings.EqualFold(part, value) }
