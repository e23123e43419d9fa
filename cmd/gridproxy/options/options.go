package options

import (
	"net/netip"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// Options is what an operator configures. Names and defaults are those of kube-proxy if it has the
// same flag.
type Options struct {
	ConfigFile string

	// Where Services, EndpointSlices and Nodes come from, and for which node.
	NodeName   string
	Kubeconfig string   // "" without Master and Manifests = in-cluster
	Master     string   // API server that replaces the one of Kubeconfig
	APIServers []string // HOST:PORT, tried in order, with the credentials of a Pod
	Manifests  []string // files, directories, "-" = standard input
	KubeQPS    float32
	KubeBurst  int32

	// Which rules a Service has.
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

	// ServiceProxyName makes this a second proxy beside kube-proxy. It serves the Services that are
	// labelled with this name, in chains with names of its own. "" = the Services without the label.
	ServiceProxyName string

	DNS DNS // the DNS server on this node

	// How the kernel is kept equal to the rules.
	ProxyMode    Mode
	Variant      netfilter.Variant
	IPTables     Periods
	IPVS         IPVS
	VerifyPeriod time.Duration
	OtherProxy   time.Duration // after this time another proxy that keeps writing is suspected
	Conntrack    Conntrack

	// Operation of the daemon.
	Shadow             bool   // compare, and write nothing
	InitOnly           bool   // do what needs privilege, and exit
	HealthzBindAddress string // "" = no server
	MetricsBindAddress string // "" = no server
	HealthzPort        uint16 // of a HealthzBindAddress that is given without a port; 0 = no server
	MetricsPort        uint16
	StateDir           string        // folder of the state that is enforced without API server
	ReconnectGrace     time.Duration // how long endpoints that turn not ready in a wave are held
	StatusSocket       string        // path of the unix socket of `gridproxy status`
	BindHardFail       bool          // end if a server cannot listen
	OOMScoreAdj        *int16        // of this process; nil = stays as it is
	Profiling          bool
	KubeProxyMetrics   bool   // /metrics has kube-proxy's names too
	LogFormat          string // text or json
	Verbosity          int

	// What kube-proxy does, by a flag, instead of running.
	Cleanup       bool
	Version       bool
	WriteConfigTo string        // nothing here
	Ignored       []IgnoredFlag // flags of kube-proxy without effect here

	// Output of the other commands.
	FromState string           // render and explain only: file of a saved state
	Family    netfilter.Family // render only
	Part      Part             // render only; "" = all
	Names     bool             // render only: what DNS says, instead of rules
	Output    string           // table, json or yaml; html of some
}

// FromStateFlag is the flag of render and explain that names a saved state.
const FromStateFlag = "from-state"

// DefaultStatusSocket is the default of --status-socket.
const DefaultStatusSocket = "/run/gridproxy/status.sock"

// Periods are the periods of a mode.
type Periods struct {
	MinSync time.Duration // from the end of one sync to the start of the next, at least
	Sync    time.Duration // a change that waits for twice this long makes /healthz fail
}

// IPVS are the options of mode ipvs alone.
type IPVS struct {
	Periods
	Scheduler    string         // of Services that do not name one
	ExcludeCIDRs []netip.Prefix // ranges in which no virtual server is made or changed
	StrictARP    bool
	TCPTimeout   time.Duration // idle timeouts of connections; 0 = the kernel's
	TCPFin       time.Duration
	UDPTimeout   time.Duration
	DrainTimeout time.Duration // how long a removed TCP endpoint keeps its open connections
}

// Conntrack are the sysctls of connection tracking. Zero keeps the kernel's value.
type Conntrack struct {
	MaxPerCore            int32
	Min                   int32
	TCPTimeoutEstablished time.Duration
	TCPTimeoutCloseWait   time.Duration
	TCPBeLiberal          bool
	UDPTimeout            time.Duration
	UDPTimeoutStream      time.Duration
}

// Defaults returns the options of an empty command line: kube-proxy 1.36's, where it has them.
func Defaults() Options {
	return Options{
		KubeQPS:            5,
		KubeBurst:          10,
		NodesWithoutUnit:   topology.WithoutUnitClosed,
		DetectLocalMode:    rules.DetectClusterCIDR,
		LocalhostNodePorts: true,
		MasqueradeBit:      14,
		ProxyMode:          Modes()[0],
		Variant:            netfilter.VariantAuto,
		IPTables:           Periods{MinSync: time.Second, Sync: 30 * time.Second},
		IPVS: IPVS{
			Periods:      Periods{MinSync: time.Second, Sync: 30 * time.Second},
			Scheduler:    ipvs.DefaultScheduler,
			DrainTimeout: 15 * time.Minute,
		},
		DNS:          defaultDNS(),
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
		HealthzPort:        10256,
		MetricsPort:        10249,
		StatusSocket:       DefaultStatusSocket,
		ReconnectGrace:     time.Minute,
		LogFormat:          "text",
		Output:             "table",
	}
}

// Topology returns the options of topology.Resolve.
func (o Options) Topology() topology.Config {
	return topology.Config{NodesWithoutUnit: o.NodesWithoutUnit, ServiceProxyName: o.ServiceProxyName}
}

// Beside reports whether another proxy serves this node too, and decides the settings of the
// machine.
func (o Options) Beside() bool { return o.Shadow || o.ServiceProxyName != "" }

// Ends reports whether `gridproxy run` with these options is no daemon: it does something else, and
// exits.
func (o Options) Ends() bool { return o.InitOnly || o.Cleanup || o.Version || o.WriteConfigTo != "" }

// Rules returns the options of rules.Compile.
func (o Options) Rules() rules.Config {
	return rules.Config{
		MasqueradeAll:      o.MasqueradeAll,
		IgnoreExternalIPs:  !o.FeatureGates.Enabled(GateExternalIPs),
		LocalhostNodePorts: o.LocalhostNodePorts,
		NodePortAddresses:  o.NodePortAddresses,
		LocalDNS:           o.localDNS(),
		DetectLocal: rules.DetectLocal{
			Mode:            o.DetectLocalMode,
			ClusterCIDRs:    o.ClusterCIDRs,
			Bridge:          o.PodBridge,
			InterfacePrefix: o.PodInterfacePrefix,
		},
	}
}
