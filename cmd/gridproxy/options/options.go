package options

import (
	"net/netip"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/iptables"
	"gridproxy/topology"
)

// Options is everything an operator decides. Names and defaults are kube-proxy's where it
// has the same flag.
type Options struct {
	ConfigFile string

	// Where Services, EndpointSlices and Nodes come from, and who looks at them.
	NodeName   string
	Kubeconfig string   // "" without Manifests = in-cluster
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

	// How the kernel is kept equal to them.
	ProxyMode     string
	Variant       iptables.Variant
	MinSyncPeriod time.Duration
	SyncPeriod    time.Duration // a change unwritten for twice this long makes /healthz fail
	VerifyPeriod  time.Duration
	Conntrack     Conntrack

	// Operation of the daemon.
	HealthzBindAddress string // "" = no server
	MetricsBindAddress string // "" = no server
	Profiling          bool
	LogFormat          string // text or json
	Verbosity          int

	// Output of the other commands.
	Family iptables.Family // render only
	Output string          // table, json or yaml
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
		ProxyMode:          "iptables",
		Variant:            iptables.VariantAuto,
		MinSyncPeriod:      time.Second,
		SyncPeriod:         30 * time.Second,
		VerifyPeriod:       10 * time.Second,
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

// Topology is the part that topology.Resolve wants.
func (o Options) Topology() topology.Config {
	return topology.Config{NodesWithoutUnit: o.NodesWithoutUnit}
}

// Rules is the part that rules.Compile wants.
func (o Options) Rules() rules.Config {
	return rules.Config{
		MasqueradeAll:      o.MasqueradeAll,
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
