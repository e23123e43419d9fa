package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"gridproxy/rules/names"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/types"
)

// DNSAnswer is what DNS says about one name on one node, and why.
type DNSAnswer struct {
	Name      string      `json:"name"` // with the cluster domain
	Node      string      `json:"node"`
	NodeKnown bool        `json:"nodeKnown"`
	Exists    bool        `json:"exists"` // false: NXDOMAIN. A name may exist without records
	Records   []DNSRecord `json:"records"`

	Service  string   `json:"service,omitempty"` // NAMESPACE/NAME, that the name belongs to; "" = there is none
	Kind     string   `json:"kind,omitempty"`
	Closed   bool     `json:"closed"`
	Unit     string   `json:"unit,omitempty"`
	LeftOut  []string `json:"leftOut,omitempty"` // endpoints that closure leaves out, by reason
	AliasOf  string   `json:"aliasOf,omitempty"` // the host name of an endpoint that the name is another one of
	Warnings []string `json:"warnings,omitempty"`
}

// DNSRecord is one record.
type DNSRecord struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// maxRecords is how many of a type are named.
const maxRecords = 100

// DNSName is what names are relative to the cluster domain: NAME.NAMESPACE.svc. A name below the
// domain may be given in full.
func DNSName(text, domain string) (relative string, err error) {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	if name == domain {
		return "", nil
	}
	relative, found := strings.CutSuffix(name, "."+domain)
	if !found {
		relative = name
	}
	last := relative[strings.LastIndexByte(relative, '.')+1:]
	if !found && last != "svc" && last != "pod" {
		return "", fmt.Errorf("%s is no name of the cluster: want one below %s, such as web.default.svc.%s; --cluster-domain names the domain", excerpt.Quoted(text), domain, domain)
	}
	return relative, nil
}

// DNS explains a name that is relative to the cluster domain.
func DNS(s topology.Snapshot, c topology.Config, zone names.Config, name string) DNSAnswer {
	view := topology.ResolveDNS(s, c)
	z := names.New(zone, view.Names(), 0)
	own, known := s.Nodes[s.Node]
	a := DNSAnswer{Name: strings.TrimSuffix(name+"."+z.Domain(), "."), Node: s.Node, NodeKnown: known, Records: []DNSRecord{}}
	a.Name = strings.TrimPrefix(a.Name, ".")
	a.addRecords(z, name)
	svc, hostname := serviceOfName(view, name)
	if svc == nil {
		return a
	}
	a.Service, a.Kind, a.Closed = svc.Service.String(), string(svc.Kind), svc.Closure.Closed()
	a.Unit = Unit(svc.Closure.Keys, own)
	for _, r := range svc.Closure.LeftOut {
		a.LeftOut = append(a.LeftOut, fmt.Sprintf("%d: %s", r.Count, r.Reason))
	}
	for _, alias := range svc.Aliases {
		if alias.Alias == hostname {
			a.AliasOf = alias.Hostname
		}
	}
	a.Warnings = svc.Doubts()
	return a
}

func (a *DNSAnswer) addRecords(z *names.Zone, name string) {
	for _, of := range []struct {
		kind string
		want names.Want
	}{{"A", names.WantIPv4}, {"AAAA", names.WantIPv6}, {"SRV", names.WantServices}} {
		records, _, exists := z.Lookup(name, of.want, maxRecords, 0)
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

// serviceOfName is the Service of a name, and the label before it.
func serviceOfName(view topology.DNSView, name string) (svc *topology.DNSService, hostname string) {
	labels := strings.Split(name, ".")
	n := len(labels)
	if n < 3 || labels[n-1] != "svc" {
		return nil, ""
	}
	if n == 4 {
		hostname = labels[0]
	}
	of := types.NamespacedName{Namespace: labels[n-2], Name: labels[n-3]}
	i, found := slices.BinarySearchFunc(view.Services, of, func(svc *topology.DNSService, name types.NamespacedName) int {
		return topology.CompareServices(svc.Service, name)
	})
	if !found {
		return nil, ""
	}
	return view.Services[i], hostname
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
	switch {
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
