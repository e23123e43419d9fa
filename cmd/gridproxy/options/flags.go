package options

import (
	"strconv"
	"strings"
	"time"

	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"github.com/spf13/pflag"
)

// Group is a group of flags in the help of a command.
type Group uint8

// The groups of flags.
const (
	GroupSource  Group = iota // where objects come from, and for which node
	GroupRules                // what rules a Service has, and the mode
	GroupKernel               // which iptables
	GroupDaemon               // what only a running daemon does
	groupIgnored              // what kube-proxy has, without effect here; in no help
)

// AddFlags declares the flags of all groups, so that every command accepts the flags of the daemon.
// Only the groups in show are in the help of the command.
func (o *Options) AddFlags(flags *pflag.FlagSet, show ...Group) {
	flags.SetNormalizeFunc(kubeProxyName)
	groups := []func(*pflag.FlagSet){
		GroupSource: o.addSource, GroupRules: o.addRules, GroupKernel: o.addKernel, GroupDaemon: o.addDaemon, groupIgnored: o.addWithoutEffect,
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

// kubeProxyName returns the name of a flag here, also for kube-proxy's other name of it and, as
// kube-proxy does, for underscores instead of hyphens.
func kubeProxyName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name = strings.ReplaceAll(name, "_", "-"); name {
	case "hostname-override":
		name = "node-name"
	case "logging-format":
		name = "log-format"
	}
	return pflag.NormalizedName(name)
}

func (o *Options) addSource(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile, "`FILE` with a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1); a flag on the command line wins over its field; a field without effect here is a warning")
	fs.Var(word(&o.NodeName, "name", parseNodeName), "node-name", "name of the Node whose view this is; kube-proxy's --hostname-override is taken too")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "`FILE` that says how to reach the API server; without it, --master and --manifests: in-cluster")
	fs.Var(word(&o.Master, "url", parseMaster), "master", "address of the API server, instead of the one in --kubeconfig, with the credentials there")
	fs.Var(listOf(&o.APIServers, parseServers, printServers, "HOST:PORT[,HOST:PORT]"),
		"api-servers", "addresses of API servers, tried in order, starting at an index derived from the node name, with the credentials of this Pod; without it the address in the environment, which may be the cluster IP that this daemon has yet to write")
	fs.StringArrayVar(&o.Manifests, "manifests", o.Manifests, "Services, EndpointSlices and Nodes as YAML or JSON in a `FILE|DIR|-`, instead of an API server; - is standard input; may be repeated")
	fs.Var(flagOf(&o.KubeQPS, parseQPS, printQPS, "number"), "kube-api-qps", "requests per second to the API server")
	fs.Var(flagOf(&o.KubeBurst, parseCount, printNumber, "number"), "kube-api-burst", "burst of requests to the API server")
}

func (o *Options) addRules(fs *pflag.FlagSet) {
	fs.Var(choice(&o.NodesWithoutUnit, "closed|local|open", topology.WithoutUnitClosed, topology.WithoutUnitLocal, topology.WithoutUnitOpen),
		"nodes-without-unit", "which endpoints of a Service a known node uses that has none of its topology keys: none, its own, or all")
	fs.Var(offering(flagOf(&o.DetectLocalMode, parseDetectLocalMode, printWord, "mode"), detectLocalModes()...),
		"detect-local-mode", "how packets of this node's Pods are recognised: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix")
	fs.Var(flagOf(&o.ClusterCIDRs, parsePrefixes, printList, "CIDR[,CIDR]"),
		"cluster-cidr", "range of the Pods, the first of each family counts; without it mode ClusterCIDR detects nothing")
	fs.Var(word(&o.PodBridge, "name", parseInterface), "pod-bridge-interface", "bridge of this node's Pods, for mode BridgeInterface")
	fs.Var(word(&o.PodInterfacePrefix, "prefix", parseInterface), "pod-interface-name-prefix", "prefix of the names of the Pods' interfaces, for mode InterfaceNamePrefix")
	fs.Var(listOf(&o.NodePortAddresses, parseNodePortAddresses, printNodePortAddresses, "keyword|CIDR,..."),
		"nodeport-addresses", "addresses of this node on which NodePorts answer: those inside these ranges; primary stands for the first address of each family in the Node object, localhost for 127.0.0.0/8 and ::1/128, all for 0.0.0.0/0 and ::/0; a family for which nothing is listed answers on all, but with primary on none while the Node object has no address")
	fs.BoolVar(&o.LocalhostNodePorts, "iptables-localhost-nodeports", o.LocalhostNodePorts, "let NodePorts answer on 127.0.0.0/8 too")
	fs.BoolVar(&o.MasqueradeAll, "masquerade-all", o.MasqueradeAll, "masquerade all packets to a cluster IP")
	fs.Var(gatesValue{&o.FeatureGates}, "feature-gates", "kube-proxy's feature gates, of which two have an effect: "+GateExternalIPs+"=false ignores spec.externalIPs of all Services, and "+GateIPVS+"=false forbids mode ipvs; may be repeated")
	fs.Var(flagOf(&o.MasqueradeBit, parseMasqueradeBit, printNumber, "bit"), "iptables-masquerade-bit", "bit of the packet mark that asks for masquerading, 0 to 31")
	fs.Var(offering(flagOf(&o.ProxyMode, parseProxyMode, printWord, strings.Join(texts(Modes()), "|")), Modes()...), "proxy-mode", "kernel mechanism: chains, or virtual servers with chains for what these cannot express")
	fs.Var(word(&o.ServiceProxyName, "name", parseProxyName), "service-proxy-name", "serve only the Services whose label service.kubernetes.io/service-proxy-name is this, which kube-proxy leaves alone, in chains whose names begin with GRID-; without it those without the label, in chains with kube-proxy's names")
	fs.Var(offering(word(&o.IPVS.Scheduler, "name", parseScheduler), ipvs.Schedulers()...), "ipvs-scheduler", "how a virtual server chooses an endpoint, by its name in ipvsadm(8); a Service may name another one in the annotation "+topology.AnnotationScheduler)
	fs.Var(listOf(&o.IPVS.ExcludeCIDRs, parsePrefixes, printList, "CIDR[,CIDR]"),
		"ipvs-exclude-cidrs", "ranges in which no virtual server is made or changed; Services there are written as chains")
	o.addDNSRules(fs)
}

func (o *Options) addKernel(fs *pflag.FlagSet) {
	fs.Var(choice(&o.Variant, "auto|nft|legacy", netfilter.VariantAuto, netfilter.VariantNFT, netfilter.VariantLegacy), "iptables-variant", "which iptables; auto: the one in which the kubelet left its hint, else the only one with rules of a service proxy, else nft")
}

func (o *Options) addDaemon(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Shadow, "shadow", o.Shadow, "write nothing: compare what would be written with what the kernel holds, beside the proxy that serves the node, and report by metrics, log and gridproxy diff")
	period := func(to *time.Duration, least, most time.Duration, name, usage string) {
		fs.Var(flagOf(to, parseDuration(least, most), time.Duration.String, "duration"), name, usage+"; at most "+most.String())
	}
	for _, m := range table() {
		p, mode := m.periods(o), string(m.name)
		period(&p.MinSync, 0, minSyncPeriodMax, mode+"-min-sync-period", "in mode "+mode+": least time from the end of one sync to the start of the next; a verification does not count")
		period(&p.Sync, time.Second, syncPeriodMax, mode+"-sync-period", "in mode "+mode+": /healthz and /livez fail once a change has waited twice this long")
	}
	period(&o.IPVS.DrainTimeout, 0, drainTimeoutMax, "ipvs-drain-timeout", "how long a removed TCP endpoint keeps its open connections; 0s: removed at once; in mode iptables, for virtual servers that mode ipvs has left")
	period(&o.IPVS.TCPTimeout, 0, kernelTimeoutMax, "ipvs-tcp-timeout", "idle timeout of TCP connections in IPVS; 0 keeps the kernel's")
	period(&o.IPVS.TCPFin, 0, kernelTimeoutMax, "ipvs-tcpfin-timeout", "timeout of TCP connections in IPVS after a FIN; 0 keeps the kernel's")
	period(&o.IPVS.UDPTimeout, 0, kernelTimeoutMax, "ipvs-udp-timeout", "idle timeout of UDP flows in IPVS; 0 keeps the kernel's")
	fs.BoolVar(&o.IPVS.StrictARP, "ipvs-strict-arp", o.IPVS.StrictARP, "answer ARP only for addresses of the link that received the request; load balancers on the node's network need it")
	period(&o.VerifyPeriod, time.Second, verifyPeriodMax, "verify-period", "how often the rules in the kernel are compared with the desired ones, and repaired; less often where that would take more than 2% of a processor, and later while changes keep coming")
	period(&o.OtherProxy, time.Second, otherProxyAfterMax, "other-proxy-after", "how long another service proxy must keep writing into this node's rules before it is reported; longer than two daemons run at once in a rolling update")
	fs.StringVar(&o.StateDir, "state-dir", o.StateDir, "`DIR` in which the state that is in force is saved, so that a node that starts without API server serves its Services; empty: not saved")
	period(&o.ReconnectGrace, 0, reconnectGraceMax, "reconnect-grace", "how long an endpoint is used that turned not ready with half of its unit's endpoints of that Service when the API server came back after 20s or more; 0: not at all")

	o.addDNS(fs)
	count := func(to *int32, name, usage string) {
		fs.Var(flagOf(to, parseCount, printNumber, "number"), name, usage)
	}
	c := &o.Conntrack
	count(&c.MaxPerCore, "conntrack-max-per-core", "nf_conntrack_max for each online CPU; it is only raised; 0 keeps the kernel's")
	count(&c.Min, "conntrack-min", "minimum of nf_conntrack_max, independent of the number of cores")
	period(&c.TCPTimeoutEstablished, 0, kernelTimeoutMax, "conntrack-tcp-timeout-established", "idle timeout of established TCP flows; 0 keeps the kernel's")
	period(&c.TCPTimeoutCloseWait, 0, kernelTimeoutMax, "conntrack-tcp-timeout-close-wait", "timeout of TCP flows in CLOSE_WAIT; 0 keeps the kernel's")
	fs.BoolVar(&c.TCPBeLiberal, "conntrack-tcp-be-liberal", c.TCPBeLiberal, "track TCP packets outside of the window, and write no rule that drops INVALID packets")
	period(&c.UDPTimeout, 0, kernelTimeoutMax, "conntrack-udp-timeout", "idle timeout of UDP flows without reply; 0 keeps the kernel's")
	period(&c.UDPTimeoutStream, 0, kernelTimeoutMax, "conntrack-udp-timeout-stream", "idle timeout of UDP flows with replies; 0 keeps the kernel's")

	o.addServers(fs)
	o.addInstead(fs)
	fs.BoolVar(&o.Profiling, "profiling", o.Profiling, "serve /debug/pprof at the metrics address")
	fs.Var(choice(&o.LogFormat, "text|json", "text", "json"), "log-format", "format of log lines")
	fs.Var(flagOf(&o.OOMScoreAdj, parseScore, printScore, "number"), "oom-score-adj", "oom_score_adj of this process, -1000 to 1000; without it unchanged")
	fs.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "verbosity of the log: 0 what an operator must know, 4 every sync, higher values for client-go")
}

func (o *Options) addServers(fs *pflag.FlagSet) {
	healthz, metrics := newBind(&o.HealthzBindAddress, &o.HealthzPort), newBind(&o.MetricsBindAddress, &o.MetricsPort)
	fs.Var(bindAddress{healthz}, "healthz-bind-address", "address of /healthz, /livez and /readyz; empty: not served")
	fs.Var(bindAddress{metrics}, "metrics-bind-address", "address of /metrics and /proxyMode; empty: not served")
	fs.Var(bindPort{healthz}, "healthz-port", "port of a --healthz-bind-address without one; 0: not served")
	fs.Var(bindPort{metrics}, "metrics-port", "port of a --metrics-bind-address without one; 0: not served")
	fs.BoolVar(&o.KubeProxyMetrics, "kube-proxy-metrics", o.KubeProxyMetrics, "serve metrics that kube-proxy has too under its names besides, for its dashboards")
	o.AddStatusSocket(fs)
	fs.BoolVar(&o.BindHardFail, "bind-address-hard-fail", o.BindHardFail, "end with code 3 if the address of /healthz or /metrics cannot be used, instead of trying again")
}

// AddStatusSocket declares --status-socket.
func (o *Options) AddStatusSocket(fs *pflag.FlagSet) {
	fs.StringVar(&o.StatusSocket, "status-socket", o.StatusSocket, "`PATH` of the unix socket at which the daemon answers gridproxy status; empty: none")
}

// addInstead declares the flags with which `gridproxy run` does something else than to run.
func (o *Options) addInstead(fs *pflag.FlagSet) {
	fs.BoolVar(&o.InitOnly, "init-only", o.InitOnly, "do what needs more than the capabilities NET_ADMIN and NET_RAW, such as sysctls where /proc/sys is read-only, and exit")
	fs.BoolVar(&o.Cleanup, "cleanup", o.Cleanup, "do what gridproxy cleanup does, and exit")
	fs.VarPF(flagOf(&o.Version, parseVersionFlag, strconv.FormatBool, "true|raw|false"), "version", "", "print what gridproxy version prints, and exit").NoOptDefVal = "true"
	fs.StringVar(&o.WriteConfigTo, "write-config-to", o.WriteConfigTo, "`FILE` of kube-proxy's configuration; refused: gridproxy writes none")
}

// AddFamily declares --ip-family.
func (o *Options) AddFamily(fs *pflag.FlagSet) {
	fs.Var(offering(flagOf(&o.Family, parseFamily, printFamily, "ipv4|ipv6"), "ipv4", "ipv6"), "ip-family", "family whose rules are printed")
}

// AddFromState declares --from-state.
func (o *Options) AddFromState(fs *pflag.FlagSet) {
	fs.StringVar(&o.FromState, FromStateFlag, o.FromState, "`FILE` that a daemon saved in its --state-dir, instead of manifests or an API server; the node is that of the file")
}

// AddPart declares --part.
func (o *Options) AddPart(fs *pflag.FlagSet) {
	fs.Var(choice(&o.Part, "ipvs|ipset|addresses|iptables", Parts()...), "part", "with --proxy-mode ipvs, the only text to print: for ipvsadm-restore, ipset restore, ip -batch or iptables-restore; without it all four, each after a comment line with its name")
}

// AddNames declares --names.
func (o *Options) AddNames(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Names, "names", o.Names, "print what DNS says on the node about every Service, instead of rules")
}

// AddOutput declares --output. Besides table, json and yaml a command may have more formats.
func (o *Options) AddOutput(fs *pflag.FlagSet, more ...string) {
	formats := append([]string{"table", "json", "yaml"}, more...)
	fs.VarP(choice(&o.Output, strings.Join(formats, "|"), formats...), "output", "o", "format of the answer")
}
