package options

import (
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"github.com/spf13/pflag"
)

// Group is a set of flags that belong together.
type Group uint8

// The groups of flags.
const (
	GroupSource Group = iota // where objects come from and who looks at them
	GroupRules               // what Services mean, and in which mechanism they are spelled
	GroupKernel              // which iptables
	GroupDaemon              // what only a running daemon does
)

// AddFlags declares the flags of all groups, so that the argument list of a daemon can be
// handed to any command as it is. The groups that a command does not show stay out of its
// help.
func (o *Options) AddFlags(flags *pflag.FlagSet, show ...Group) {
	flags.SetNormalizeFunc(kubeProxyName)
	groups := []func(*pflag.FlagSet){
		GroupSource: o.addSource, GroupRules: o.addRules, GroupKernel: o.addKernel, GroupDaemon: o.addDaemon,
	}
	shown := make([]bool, len(groups))
	for _, g := range show {
		shown[g] = true
	}
	for g, add := range groups {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		add(fs)
		fs.VisitAll(func(f *pflag.Flag) { f.Hidden = !shown[g] })
		flags.AddFlagSet(fs)
	}
}

// kubeProxyName takes kube-proxy's name for a flag that is called otherwise here.
func kubeProxyName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "hostname-override" {
		return "node-name"
	}
	return pflag.NormalizedName(name)
}

func (o *Options) addSource(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile, "`FILE` with a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1); a flag on the command line wins over its field; a field without effect here is a warning")
	fs.Var(word(&o.NodeName, "name", parseNodeName), "node-name", "name of the Node whose view this is; kube-proxy's --hostname-override is taken too")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "`FILE` that says how to reach the API server; without it and without --manifests: in-cluster")
	fs.Var(flagOf(&o.APIServers, parseServers, printServers, "HOST:PORT[,HOST:PORT]"),
		"api-servers", "where API servers answer, tried in turn from one on that the node's name picks, with the credentials of this Pod; without it the address that the environment names, which may be the cluster IP that this daemon is to write")
	fs.StringArrayVar(&o.Manifests, "manifests", o.Manifests, "Services, EndpointSlices and Nodes as YAML or JSON in a `FILE|DIR|-`, instead of an API server; - is standard input; may be repeated")
	fs.Var(flagOf(&o.KubeQPS, parseQPS, printQPS, "number"), "kube-api-qps", "requests a second to the API server")
	fs.Var(flagOf(&o.KubeBurst, parseCount, printNumber, "number"), "kube-api-burst", "requests to the API server that may come at once")
	fs.StringVar(&o.StateDir, "state-dir", o.StateDir, "`DIR` for the last enforced state; reserved: nothing is written there yet")
}

func (o *Options) addRules(fs *pflag.FlagSet) {
	fs.Var(flagOf(&o.NodesWithoutUnit, oneOf(topology.WithoutUnitClosed, topology.WithoutUnitLocal, topology.WithoutUnitOpen), printWord, "closed|local|open"),
		"nodes-without-unit", "what a known node with none of a Service's topology keys gets of it: nothing, its own endpoints, or all")
	fs.Var(flagOf(&o.DetectLocalMode, oneOf(rules.DetectClusterCIDR, rules.DetectNodeCIDR, rules.DetectBridgeInterface, rules.DetectInterfaceNamePrefix), printWord, "mode"),
		"detect-local-mode", "how packets of this node's Pods are told from others: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix")
	fs.Var(flagOf(&o.ClusterCIDRs, parsePrefixes, printPrefixes, "CIDR[,CIDR]"),
		"cluster-cidr", "range of the Pods, the first of each family counts; without it mode ClusterCIDR detects nothing")
	fs.Var(word(&o.PodBridge, "name", parseInterface), "pod-bridge-interface", "bridge that this node's Pods send through, for mode BridgeInterface")
	fs.Var(word(&o.PodInterfacePrefix, "prefix", parseInterface), "pod-interface-name-prefix", "how the names of the Pods' interfaces start, for mode InterfaceNamePrefix")
	fs.Var(flagOf(&o.NodePortAddresses, parseNodePortAddresses, printNodePortAddresses, "primary|CIDR,..."),
		"nodeport-addresses", "addresses of this node that NodePorts answer on: inside these ranges, or the Node's own; without it all")
	fs.BoolVar(&o.LocalhostNodePorts, "iptables-localhost-nodeports", o.LocalhostNodePorts, "let NodePorts answer on 127.0.0.0/8 too")
	fs.BoolVar(&o.MasqueradeAll, "masquerade-all", o.MasqueradeAll, "masquerade everything that is sent to a cluster IP")
	fs.Var(featureGates{&o.FeatureGates}, "feature-gates", "kube-proxy's feature gates, of which only "+GateExternalIPs+" has an effect: false ignores spec.externalIPs of all Services; may be repeated; unknown gates are a warning")
	fs.Var(flagOf(&o.MasqueradeBit, parseMasqueradeBit, printNumber, "bit"), "iptables-masquerade-bit", "bit of the packet mark that asks for masquerading, 0 to 31")
	fs.Var(flagOf(&o.ProxyMode, parseProxyMode, printWord, "iptables|ipvs"), "proxy-mode", "kernel mechanism: chains, or virtual servers with chains for what these cannot say")
	fs.Var(word(&o.ServiceProxyName, "name", parseProxyName), "service-proxy-name", "serve only the Services whose label service.kubernetes.io/service-proxy-name is this, which kube-proxy leaves alone, in chains whose names begin with GRID-; without it those without the label, in chains with kube-proxy's names")
	fs.Var(word(&o.IPVS.Scheduler, "name", parseScheduler), "ipvs-scheduler", "how a virtual server chooses among the endpoints, as ipvsadm(8) calls it; a Service may name its own by the annotation "+rules.AnnotationScheduler)
	fs.Var(flagOf(&o.IPVS.ExcludeCIDRs, parsePrefixes, printPrefixes, "CIDR[,CIDR]"),
		"ipvs-exclude-cidrs", "no virtual server with an address inside these is made or touched; Services there are written as chains")
}

func (o *Options) addKernel(fs *pflag.FlagSet) {
	fs.Var(flagOf(&o.Variant, oneOf(netfilter.VariantAuto, netfilter.VariantNFT, netfilter.VariantLegacy), printWord, "auto|nft|legacy"), "iptables-variant", "which iptables; auto: the one in which the kubelet left its hint, else the only one with rules of a service proxy, else nft")
}

func (o *Options) addDaemon(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Shadow, "shadow", o.Shadow, "write nothing: compare what would be written with what the kernel holds, beside the proxy that serves it, and tell by metrics, log and gridproxy diff")
	period := func(to *time.Duration, least time.Duration, name, usage string) {
		fs.Var(flagOf(to, parseDuration(least), time.Duration.String, "duration"), name, usage)
	}
	for mode, p := range map[Mode]*Periods{ModeIPTables: &o.IPTables, ModeIPVS: &o.IPVS.Periods} {
		period(&p.MinSync, 0, string(mode)+"-min-sync-period", "in mode "+string(mode)+": least time from the end of one sync to the start of the next")
		period(&p.Sync, time.Second, string(mode)+"-sync-period", "in mode "+string(mode)+": /healthz and /livez fail once a change has waited twice this long")
	}
	period(&o.IPVS.DrainTimeout, 0, "ipvs-drain-timeout", "how long a removed TCP endpoint keeps the connections that it has; 0s: removed at once; in mode iptables, for virtual servers that mode ipvs has left")
	period(&o.IPVS.TCPTimeout, 0, "ipvs-tcp-timeout", "idle timeout of TCP connections in IPVS; 0 leaves it alone")
	period(&o.IPVS.TCPFin, 0, "ipvs-tcpfin-timeout", "timeout of TCP connections in IPVS after a FIN; 0 leaves it alone")
	period(&o.IPVS.UDPTimeout, 0, "ipvs-udp-timeout", "idle timeout of UDP flows in IPVS; 0 leaves it alone")
	fs.BoolVar(&o.IPVS.StrictARP, "ipvs-strict-arp", o.IPVS.StrictARP, "answer ARP only for addresses of the link that was asked, as load balancers on the node's network need it")
	period(&o.VerifyPeriod, time.Second, "verify-period", "how often the kernel is compared with what was written, and mended")
	period(&o.OtherProxy, time.Second, "other-proxy-after", "how long another service proxy must keep writing into this node's rules until it is reported; longer than two daemons run at once in a rolling update")

	count := func(to *int32, name, usage string) {
		fs.Var(flagOf(to, parseCount, printNumber, "number"), name, usage)
	}
	c := &o.Conntrack
	count(&c.MaxPerCore, "conntrack-max-per-core", "nf_conntrack_max for each core, only ever raised; 0 leaves it alone")
	count(&c.Min, "conntrack-min", "least nf_conntrack_max, whatever the cores")
	period(&c.TCPTimeoutEstablished, 0, "conntrack-tcp-timeout-established", "idle timeout of established TCP flows; 0 leaves it alone")
	period(&c.TCPTimeoutCloseWait, 0, "conntrack-tcp-timeout-close-wait", "timeout of TCP flows in CLOSE_WAIT; 0 leaves it alone")
	fs.BoolVar(&c.TCPBeLiberal, "conntrack-tcp-be-liberal", c.TCPBeLiberal, "track TCP packets outside of the window, and write no rule that drops INVALID ones")
	period(&c.UDPTimeout, 0, "conntrack-udp-timeout", "idle timeout of UDP flows without reply; 0 leaves it alone")
	period(&c.UDPTimeoutStream, 0, "conntrack-udp-timeout-stream", "idle timeout of UDP flows with replies; 0 leaves it alone")

	fs.BoolVar(&o.InitOnly, "init-only", o.InitOnly, "do what takes more than the capabilities NET_ADMIN and NET_RAW, such as sysctls where /proc/sys is read-only, and end")
	fs.Var(word(&o.HealthzBindAddress, "ip:port", parseBind(10256)), "healthz-bind-address", "where /healthz, /livez and /readyz are served; empty: nowhere")
	fs.Var(word(&o.MetricsBindAddress, "ip:port", parseBind(10249)), "metrics-bind-address", "where /metrics and /proxyMode are served; empty: nowhere")
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve /debug/pprof at the metrics address")
	fs.Var(word(&o.LogFormat, "text|json", oneOf("text", "json")), "log-format", "how log lines look")
	fs.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "how much is logged: 0 what an operator must know, 4 every sync, more for client-go's own lines")
}

// AddFamily declares --ip-family.
func (o *Options) AddFamily(fs *pflag.FlagSet) {
	fs.Var(flagOf(&o.Family, parseFamily, printFamily, "ipv4|ipv6"), "ip-family", "which family's rules are printed")
}

// AddPart declares --part.
func (o *Options) AddPart(fs *pflag.FlagSet) {
	fs.Var(flagOf(&o.Part, oneOf(Parts()...), printWord, "ipvs|ipset|addresses|iptables"), "part", "with --proxy-mode ipvs, the one text that is printed: for ipvsadm-restore, ipset restore, ip -batch or iptables-restore; without it all four, each after a comment line with its name")
}

// AddOutput declares --output.
func (o *Options) AddOutput(fs *pflag.FlagSet) {
	fs.VarP(word(&o.Output, "table|json|yaml", oneOf("table", "json", "yaml")), "output", "o", "how the answer is printed")
}
