package explain

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"

	"gridproxy/rules/names"
	"gridproxy/topology"
	"gridproxy/topology/dnsview"
	"gridproxy/topology/excerpt"
)

// DNSAnswer is what DNS says about one name on one node, and why.
type DNSAnswer struct {
	Name      string      `json:"name"` // with the cluster domain, or an address
	Node      string      `json:"node"`
	NodeKnown bool        `json:"nodeKnown"`
	Exists    bool        `json:"exists"`             // false: NXDOMAIN, unless it is passed on. A name may exist without records
	PassedOn  bool        `json:"passedOn,omitempty"` // of an address: the query goes to the cluster's DNS
	Records   []DNSRecord `json:"records"`

	Service  string   `json:"service,omitempty"` // NAMESPACE/NAME, that the name belongs to
	Kind     string   `json:"kind,omitempty"`
	Closed   bool     `json:"closed"`
	Unit     string   `json:"unit,omitempty"`
	LeftOut  []string `json:"leftOut,omitempty"` // endpoints that closure leaves out, by reason
	AliasOf  string   `json:"aliasOf,omitempty"` // the host name of an endpoint that the name is another one of
	Reason   string   `json:"reason,omitempty"`  // why the name of a port does not exist
	Warnings []string `json:"warnings,omitempty"`
}

// DNSRecord is one record.
type DNSRecord struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// recordsMax is how many of a type are named.
const recordsMax = 100

// DNS returns what DNS answers to q on the node of s. zone has the cluster domain.
func DNS(s topology.Snapshot, c topology.Config, zone names.Config, q DNSQuestion) DNSAnswer {
	view := topology.ResolveDNS(s, c)
	z := names.New(zone, view.Names(), 0)
	own, known := s.Nodes[s.Node]
	a := DNSAnswer{Name: q.text, Node: s.Node, NodeKnown: known, Records: []DNSRecord{}}
	name := q.name
	if q.addr.IsValid() {
		name = a.addNames(z, q.addr)
	} else {
		a.addRecords(z, name)
	}
	svc, before := serviceOfName(view, name)
	ofEndpoint := len(before) == 1
	if svc == nil && q.addr.IsValid() {
		svc, ofEndpoint = serviceOfAddr(view, q.addr), true
	}
	if svc == nil {
		return a
	}
	a.Service, a.Kind, a.Closed = svc.Service.String(), string(svc.Kind), svc.Closure.Closed()
	a.Unit = Unit(svc.Closure.Keys, own)
	if svc.Kind == dnsview.Headless || ofEndpoint { // else the answer is the cluster IP
		for _, r := range svc.Closure.LeftOut {
			a.LeftOut = append(a.LeftOut, fmt.Sprintf("%d: %s", r.Count, r.Reason))
		}
	}
	if len(before) == 2 && !a.Exists && strings.HasPrefix(before[0], "_") && strings.HasPrefix(before[1], "_") {
		a.Reason = whyNoPort(svc)
	}
	for _, alias := range svc.Aliases {
		if len(before) == 1 && alias.Alias == before[0] {
			a.AliasOf = alias.Hostname
		}
	}
	a.Warnings = svc.Doubts()
	return a
}

// addNames adds the names of an address, at most recordsMax, and returns the first one,
// relative to the cluster domain; "" if it has none.
func (a *DNSAnswer) addNames(z *names.Zone, addr netip.Addr) (first string) {
	all := z.Reverse(addr)
	a.Exists, a.PassedOn = len(all) > 0, len(all) == 0
	for _, name := range all[:min(len(all), recordsMax)] {
		a.Records = append(a.Records, DNSRecord{"PTR", excerpt.Of(strings.TrimSuffix(name, "."))})
	}
	if len(all) == 0 {
		return ""
	}
	return strings.TrimSuffix(all[0], "."+z.Domain())
}

func (a *DNSAnswer) addRecords(z *names.Zone, name string) {
	for _, of := range []struct {
		kind string
		want names.Want
	}{{"A", names.WantIPv4}, {"AAAA", names.WantIPv6}, {"SRV", names.WantServices}} {
		records, _, exists := z.Lookup(name, of.want, recordsMax, 0)
		a.Exists = a.Exists || exists
		for _, r := range records {
			switch {
			case r.Target != "" && of.kind == "A":
				a.Records = append(a.Records, DNSRecord{"CNAME", excerpt.Of(r.Target)})
			case r.Target != "" || !r.Addr.IsValid():
			case of.kind == "SRV" && r.Port > 0:
				a.Records = append(a.Records, DNSRecord{"SRV", fmt.Sprintf("%s port %d", r.Addr, r.Port)})
			case of.kind == "A" && r.Addr.Is4(), of.kind == "AAAA" && r.Addr.Is6():
				a.Records = append(a.Records, DNSRecord{of.kind, r.Addr.String()})
			}
		}
	}
	a.Records = slices.Compact(a.Records)
}

// WriteTable writes the answer for people.
func (a DNSAnswer) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s:\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("Name", "%s", excerpt.Of(a.Name))
	node := excerpt.Of(a.Node)
	if !a.NodeKnown {
		node += " (there is no such Node)"
	}
	row("Node", "%s", node)
	row("Service", "%s", a.describeService())
	if a.AliasOf != "" {
		row("Alias of", "%s", excerpt.Of(a.AliasOf))
	}
	for _, text := range a.LeftOut {
		row("Left out", "%s", text)
	}
	for _, text := range a.Warnings {
		row("Warning", "%s", text)
	}
	if a.Reason != "" {
		row("Reason", "%s", a.Reason)
	}
	switch {
	case a.PassedOn:
		row("Answer", "what the cluster's DNS answers, except names of the cluster domain")
	case !a.Exists:
		row("Answer", "the name does not exist (NXDOMAIN)")
	case len(a.Records) == 0:
		row("Answer", "the name exists, without records of these types")
	}
	for _, r := range a.Records {
		row("Answer", "%s %s", r.Type, r.Value)
	}
	return t.Flush()
}

func (a DNSAnswer) describeService() string {
	switch {
	case a.Service == "":
		return "none of this name"
	case !a.Closed:
		return fmt.Sprintf("%s, %s, open: endpoints of all units", a.Service, a.Kind)
	default:
		return fmt.Sprintf("%s, %s, closed: unit %s", a.Service, a.Kind, cmp.Or(a.Unit, "none"))
	}
}
