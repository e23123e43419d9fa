package options

import (
	"net/netip"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// Options is everything an operator decides. Names and defaults are kube-proxy's where it
// has the same flag.
type Options struct {
	ConfigFile string

	// Where Services, EndpointSlices and Nodes come from, and who looks at them.
	NodeName   string
	Kubeconfig string   // "" without Manifests = in-cluster
	APIServers []string // HOST:PORT, tried in turn, with the credentials of a Pod
	Manifests  []string // files, directories, "-" = standard input
	KubeQPS    float32
	KubeBurst  int32
	StateDir   string // reserved

	// What closure and Services mean.
	NodesWithoutUnit   topology.NodesWithoutUnit
	DetectLocalMode    rules.DetectLocalMode
	ClusterCIDRs       []netip.Prefix
	PodBridge          string
	PodInterfacePrefix string
	NodePortAddresses  rules.NodePortAddresses
	LocalhostNodePorts bool
	MasqueradeAll      bool
	MasqueradeBit      uint8
	FeatureGates       FeatureGates

	// ServiceProxyName makes it a second proxy beside kube-proxy: it serves the Services that
	// are handed to it by this name, in chains with names of its own. "" = all others.
	ServiceProxyName string

	// How the kernel is kept equal to them.
	ProxyMode    Mode
	Variant      netfilter.Variant
	IPTables     Periods
	IPVS         IPVS
	VerifyPeriod time.Duration
	OtherProxy   time.Duration // another proxy that writes all the time is suspected after this time
	Conntrack    Conntrack

	// Operation of the daemon.
	Shadow             bool   // compare only, write nothing
	InitOnly           bool   // do what needs privilege, and end
	HealthzBindAddress string // "" = no server
	MetricsBindAddress string // "" = no server
	Profiling          bool
	LogFormat          string // text or json
	Verbosity          int

	// Output of the other commands.
	Family netfilter.Family // render only
	Part   Part             // render only; "" = all
	Output string           // table, json or yaml
}

// Mode is a kernel mechanism.
type Mode string

// The modes, as kube-proxy calls them.
const (
	ModeIPTables Mode = "iptables"
	ModeIPVS     Mode = "ipvs"
)

// Periods are those of a mode.
type Periods struct {
	MinSync time.Duration // from the end of one sync to the start of the next, at least
	Sync    time.Duration // a change unwritten for twice this long makes /healthz fail
}

// IPVS is what mode ipvs alone asks for.
type IPVS struct {
	Periods
	Scheduler    string         // of Services that do not name their own
	ExcludeCIDRs []netip.Prefix // where virtual servers are left alone, and none is made
	StrictARP    bool
	TCPTimeout   time.Duration // idle timeouts of connections; 0 leaves the kernel's alone
	TCPFin       time.Duration
	UDPTimeout   time.Duration
	DrainTimeout time.Duration // how long a removed TCP endpoint keeps its connections
}

// Part is one of the texts that make up the rules of mode ipvs.
type Part string

// Parts are those of package ipvs, and what is for iptables-restore, in the order in which they are
// printed.
func Parts() []Part {
	var all []Part
	for _, p := range ipvs.Parts() {
		all = append(all, Part(p.Name))
	}
	return append(all, "iptables")
}

// Conntrack are the sysctls of connection tracking. Zero leaves the kernel's value alone.
type Conntrack struct {
	MaxPerCore            int32
	Min                   int32
	TCPTimeoutEstablished time.Duration
	TCPTimeoutCloseWait   time.Duration
	TCPBeLiberal          bool
	UDPTimeout            time.Duration
	UDPTimeoutStream      time.Duration
}

// Defaults are the options of an empty command line: kube-proxy 1.36's, where it has them.
func Defaults() Options {
	return Options{
		KubeQPS:            5,
		KubeBurst:          10,
		NodesWithoutUnit:   topology.WithoutUnitClosed,
		DetectLocalMode:    rules.DetectClusterCIDR,
		LocalhostNodePorts: true,
		MasqueradeBit:      14,
		ProxyMode:          ModeIPTables,
		Variant:            netfilter.VariantAuto,
		IPTables:           Periods{MinSync: time.Second, Sync: 30 * time.Second},
		IPVS: IPVS{
			Periods:      Periods{MinSync: time.Second, Sync: 30 * time.Second},
			Scheduler:    ipvs.DefaultScheduler,
			DrainTimeout: 15 * time.Minute,
		},
		VerifyPeriod: 10 * time.Second,
		OtherProxy:   2 * time.Minute,
		Conntrack: Conntrack{
			MaxPerCore:            32 * 1024,
			Min:                   128 * 1024,
			TCPTimeoutEstablished: 24 * time.Hour,
			TCPTimeoutCloseWait:   time.Hour,
		},
		HealthzBindAddress: "0.0.0.0:10256",
		MetricsBindAddress: "127.0.0.1:10249",
		LogFormat:          "text",
		Output:             "table",
	}
}

// Periods are those of the mode that is in use.
func (o Options) Periods() Periods {
	if o.ProxyMode == ModeIPVS {
		return o.IPVS.Periods
	}
	return o.IPTables
}

// Servers is the part that ipvs.Compiler wants.
func (o Options) Servers() ipvs.Config {
	return ipvs.Config{Scheduler: o.IPVS.Scheduler, Exclude: o.IPVS.ExcludeCIDRs}
}

// Topology is the part that topology.Resolve wants.
func (o Options) Topology() topology.Config {
	return topology.Config{NodesWithoutUnit: o.NodesWithoutUnit, ServiceProxyName: o.ServiceProxyName}
}

// Names are those of the chains.
func (o Options) Names() netfilter.Naming {
	if o.ServiceProxyName != "" {
		return netfilter.GridNames
	}
	return netfilter.KubeNames
}

// Beside says that another proxy serves this node too, and decides the settings of the machine.
func (o Options) Beside() bool { return o.Shadow || o.ServiceProxyName != "" }

// Rules is the part that rules.Compile wants.
func (o Options) Rules() rules.Config {
	return rules.Config{
		MasqueradeAll:      o.MasqueradeAll,
		IgnoreExternalIPs:  !o.FeatureGates.Enabled(GateExternalIPs, true),
		LocalhostNodePorts: o.LocalhostNodePorts,
		NodePortAddresses:  o.NodePortAddresses,
		DetectLocal: rules.DetectLocal{
			Mode:            o.DetectLocalMode,
			ClusterCIDRs:    o.ClusterCIDRs,
			Bridge:          o.PodBridge,
			InterfacePrefix: o.PodInterfacePrefix,
		},
	}
}
