//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// dnsDeviation is a rule by which answers differ on purpose from those of CoreDNS.
type dnsDeviation struct {
	reason string
	about  func(q dns.Question) bool
	want   func(q dns.Question, ask func(dns.Question) string) string // what is right; ask asks CoreDNS
}

// dnsDeviations are all that concern a question; those that concern what is read are
// dnsInputReasons. Two more are not drawn: an address of more than 64
// endpoints of one namespace has 64 names in it, because whoever may create EndpointSlices in one
// could push out the names of the others; and of a name with more than 4,096 records the rest are
// left out, which fit into no message.
var dnsDeviations = []dnsDeviation{
	{
		"names of the servers are names in any case (RFC 4343): CoreDNS finds them in lower case only",
		func(q dns.Question) bool {
			lower := strings.ToLower(q.Name)
			return q.Name != lower && (lower == dnsDomain && q.Qtype == dns.TypeNS || strings.HasPrefix(lower, "ns.dns."+dnsDomain))
		},
		func(q dns.Question, ask func(dns.Question) string) string {
			return ask(dns.Question{Name: strings.ToLower(q.Name), Qtype: q.Qtype, Qclass: q.Qclass})
		},
	},
	{
		"in a reverse zone only addresses have names: CoreDNS has its servers, its version and the trees of Services there too",
		func(q dns.Question) bool {
			lower := strings.ToLower(q.Name)
			return slices.Contains([]string{"svc.in-addr.arpa.", "ns.dns.in-addr.arpa.", "dns-version.ip6.arpa."}, lower) && q.Qtype != dns.TypeSOA && q.Qtype != dns.TypeAXFR
		},
		func(dns.Question, func(dns.Question) string) string { return passedOn },
	},
	{
		"the servers of a reverse zone are those of the cluster domain: the names that CoreDNS gives them do not exist",
		func(q dns.Question) bool {
			lower := strings.ToLower(q.Name)
			return q.Qtype == dns.TypeNS && (lower == "in-addr.arpa." || lower == "ip6.arpa.")
		},
		func(q dns.Question, ask func(dns.Question) string) string {
			ofDomain := ask(dns.Question{Name: dnsDomain, Qtype: q.Qtype, Qclass: q.Qclass})
			return strings.ReplaceAll(ofDomain, "answer "+dnsDomain, "answer "+q.Name)
		},
	},
}
