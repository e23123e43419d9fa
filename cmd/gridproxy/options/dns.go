package options

import (
	"fmt"
	"net/netip"
	"strings"

	"gridproxy/cmd/command"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DNS is about the DNS server on this node.
type DNS struct {
	Enabled   bool
	Addresses []netip.Addr         // where it answers; at most one of each family
	Service   types.NamespacedName // the cluster's DNS, whose queries are led there
	Domain    string               // the cluster domain
	Socket    string               // where the daemon tells it what DNS says
	WhenAway  WhenAway
}

// WhenAway is what happens to queries while no DNS server of this node answers.
type WhenAway string

// The values of --dns-when-away.
const (
	AwayCluster WhenAway = "cluster" // the cluster's DNS answers, with the endpoints of all units of headless Services
	AwayRefuse  WhenAway = "refuse"
)

func defaultDNS() DNS {
	return DNS{
		Addresses: []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")},
		Service:   types.NamespacedName{Namespace: "kube-system", Name: "kube-dns"},
		Domain:    "cluster.local",
		Socket:    "/run/gridproxy/names.sock",
		WhenAway:  AwayCluster,
	}
}

// addDNSRules declares the flags that rules depend on.
func (o *Options) addDNSRules(fs *pflag.FlagSet) {
	d := &o.DNS
	fs.BoolVar(&d.Enabled, "local-dns", d.Enabled, "lead the queries of this node to grid-dns on it, while that answers")
	fs.Var(listOf(&d.Addresses, command.ParseDNSAddresses, printList, "IP[,IP]"), "dns-address",
		"addresses of grid-dns, one of each family at most, which the daemon adds to interface lo")
}

// addDNS declares the flags of the daemon alone.
func (o *Options) addDNS(fs *pflag.FlagSet) {
	d := &o.DNS
	fs.Var(flagOf(&d.Service, parseServiceName, types.NamespacedName.String, "NAMESPACE/NAME"), "dns-service", "with --local-dns: the Service of the cluster's DNS, whose port 53 leads to grid-dns")
	fs.Var(word(&d.Domain, "domain", parseDomain), "cluster-domain", "with --local-dns: the domain of the cluster, as the kubelet has it")
	fs.StringVar(&d.Socket, "names-socket", d.Socket, "with --local-dns: `PATH` of the unix socket at which grid-dns learns what DNS says")
	fs.Var(choice(&d.WhenAway, "cluster|refuse", AwayCluster, AwayRefuse), "dns-when-away",
		"with --local-dns: who answers while grid-dns does not: the DNS of the cluster, for which headless Services are open, or no one")
}

func (o Options) checkDNS(wrong func(format string, args ...any)) {
	d := o.DNS
	if !d.Enabled {
		return
	}
	if o.Shadow {
		wrong("--local-dns and --shadow: a shadow writes nothing; leave one of them out")
	}
	if o.ServiceProxyName != "" {
		wrong("--local-dns and --service-proxy-name %s: the Service of the cluster's DNS is the other proxy's; leave one of them out", o.ServiceProxyName)
	}
	if len(d.Addresses) == 0 {
		wrong("--dns-address is empty: name an address for grid-dns")
	}
	for _, addr := range d.Addresses {
		for _, pods := range o.ClusterCIDRs {
			if pods.Contains(addr) {
				wrong("--dns-address %s is inside of --cluster-cidr %s, so that a Pod may have it; give an address outside of all ranges of the cluster, such as 169.254.20.12 or fd00:6772:6964::12", addr, pods)
			}
		}
	}
	if d.Socket == "" {
		wrong("--names-socket is empty: name a path, at which grid-dns learns what DNS says")
	}
}

func parseServiceName(text string) (types.NamespacedName, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Label(name)) > 0 {
		return types.NamespacedName{}, fmt.Errorf("%q is no Service; want NAMESPACE/NAME, such as kube-system/kube-dns", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func parseDomain(text string) (string, error) {
	domain := strings.ToLower(strings.TrimSuffix(text, "."))
	if problems := validation.IsDNS1123Subdomain(domain); len(problems) > 0 {
		return "", fmt.Errorf("no domain: %s", problems[0])
	}
	return domain, nil
}

// localDNS returns rules.Config.LocalDNS, which is nil without --local-dns.
func (o Options) localDNS() []netip.Addr {
	if !o.DNS.Enabled {
		return nil
	}
	return o.DNS.Addresses
}
