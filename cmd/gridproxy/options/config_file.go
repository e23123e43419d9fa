package options

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"gridproxy/topology/documents"
	"gridproxy/topology/regularfile"

	"github.com/spf13/pflag"
	kubeproxy "k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// SetConfig sets the flags that are not on the command line from text, a
// KubeProxyConfiguration. Warnings and errors begin with the name of its file. A warning names
// each field that has no effect here. A wrong field is an error, and the others are set.
func SetConfig(file string, text []byte, flags *pflag.FlagSet) (warnings []string, err error) {
	config, warnings, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	more, problems := apply(config, flags)
	warnings = append(warnings, more...)
	for i, w := range warnings {
		warnings[i] = file + ": " + w
	}
	for i, p := range problems {
		problems[i] = fmt.Errorf("%s: %w", file, p) // each is printed on a line of its own
	}
	return warnings, errors.Join(problems...)
}

// ConfigText reads the file of --config, which may be a pipe that a shell made.
func ConfigText(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading --config: %w", err)
	}
	defer file.Close()
	text, err := regularfile.ReadAll(file, ConfigMax)
	if err != nil {
		return nil, fmt.Errorf("reading --config: %s: %w", name, err)
	}
	return text, nil
}

// decode parses text as leniently as kube-proxy: an unknown or repeated field is a warning, a
// wrong type an error.
func decode(text []byte) (*kubeproxy.KubeProxyConfiguration, []string, error) {
	text, err := documents.ReadOne(text)
	if err != nil {
		return nil, nil, err
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, nil, fmt.Errorf("not YAML: %w", err)
	}
	config := &kubeproxy.KubeProxyConfiguration{}
	strict, err := json.UnmarshalStrict(raw, config)
	if err != nil {
		return nil, nil, fmt.Errorf("not a KubeProxyConfiguration: %w", err)
	}
	want := kubeproxy.SchemeGroupVersion.String()
	if config.APIVersion != want || config.Kind != "KubeProxyConfiguration" {
		return nil, nil, fmt.Errorf("apiVersion %q, kind %q: want apiVersion %s, kind KubeProxyConfiguration", config.APIVersion, config.Kind, want)
	}
	var warnings []string
	for _, problem := range strict {
		warnings = append(warnings, problem.Error()+": ignored")
	}
	return config, warnings, nil
}

// flagOfField returns the flag that each field of the file sets, by the field. Every other
// field has no effect here, except for the feature gates.
func flagOfField() map[string]string {
	return map[string]string{
		"hostnameOverride":                "node-name",
		"clientConnection.kubeconfig":     "kubeconfig",
		"clientConnection.qps":            "kube-api-qps",
		"clientConnection.burst":          "kube-api-burst",
		"mode":                            "proxy-mode",
		"clusterCIDR":                     "cluster-cidr",
		"detectLocalMode":                 "detect-local-mode",
		"detectLocal.bridgeInterface":     "pod-bridge-interface",
		"detectLocal.interfaceNamePrefix": "pod-interface-name-prefix",
		"nodePortAddresses":               "nodeport-addresses",
		"bindAddressHardFail":             "bind-address-hard-fail",
		"oomScoreAdj":                     "oom-score-adj",
		"healthzBindAddress":              "healthz-bind-address",
		"metricsBindAddress":              "metrics-bind-address",
		"enableProfiling":                 "profiling",
		"logging.format":                  "log-format",
		"logging.verbosity":               "v",
		"iptables.masqueradeBit":          "iptables-masquerade-bit",
		"iptables.masqueradeAll":          "masquerade-all",
		"iptables.localhostNodePorts":     "iptables-localhost-nodeports",
		"iptables.syncPeriod":             "iptables-sync-period",
		"iptables.minSyncPeriod":          "iptables-min-sync-period",
		"ipvs.scheduler":                  "ipvs-scheduler",
		"ipvs.excludeCIDRs":               "ipvs-exclude-cidrs",
		"ipvs.strictARP":                  "ipvs-strict-arp",
		"ipvs.tcpTimeout":                 "ipvs-tcp-timeout",
		"ipvs.tcpFinTimeout":              "ipvs-tcpfin-timeout",
		"ipvs.udpTimeout":                 "ipvs-udp-timeout",
		"ipvs.syncPeriod":                 "ipvs-sync-period",
		"ipvs.minSyncPeriod":              "ipvs-min-sync-period",
		"conntrack.maxPerCore":            "conntrack-max-per-core",
		"conntrack.min":                   "conntrack-min",
		"conntrack.tcpEstablishedTimeout": "conntrack-tcp-timeout-established",
		"conntrack.tcpCloseWaitTimeout":   "conntrack-tcp-timeout-close-wait",
		"conntrack.tcpBeLiberal":          "conntrack-tcp-be-liberal",
		"conntrack.udpTimeout":            "conntrack-udp-timeout",
		"conntrack.udpStreamTimeout":      "conntrack-udp-timeout-stream",
	}
}

// apply sets the flags of the fields in the file. It returns an error for every wrong field.
func apply(config *kubeproxy.KubeProxyConfiguration, flags *pflag.FlagSet) (warnings []string, problems []error) {
	names := flagOfField()
	warnings = defaultServers(config, flags)
	for _, l := range leaves(config) {
		name, known := names[l.path]
		flag := flags.Lookup(name)
		gate, isGate := strings.CutPrefix(l.path, "featureGates.")
		switch {
		case isGate && flags.Lookup("feature-gates") != nil:
			if e := defaultGate(flags.Lookup("feature-gates"), gate, l.text); e != nil {
				problems = append(problems, fmt.Errorf("field %s: %w", l.path, e))
			}
		case l.path == "bindAddress": // see defaultServers
		case !known || flag == nil:
			warnings = append(warnings, fmt.Sprintf("field %s has no effect here", l.path))
		case flag.Changed:
		case name == "kubeconfig" && flags.Changed("manifests"):
			warnings = append(warnings, fmt.Sprintf("field %s has no effect beside --manifests", l.path))
		case name == "kubeconfig" && flags.Changed("api-servers"):
			warnings = append(warnings, fmt.Sprintf("field %s has no effect beside --api-servers", l.path))
		default:
			if e := flag.Value.Set(l.text); e != nil {
				problems = append(problems, fmt.Errorf("field %s: %q: %w", l.path, l.text, e))
			}
		}
	}
	warnings = append(warnings, ofOtherMode(config, flags)...)
	slices.Sort(warnings)
	return warnings, problems
}

// defaultServers does what the field bindAddress does to servers in kube-proxy: with an IPv6
// address, those without an address of their own listen on IPv6 addresses. It returns a warning
// unless that is all, because the field has no effect here as the address of the node.
func defaultServers(config *kubeproxy.KubeProxyConfiguration, flags *pflag.FlagSet) (warnings []string) {
	ip, err := netip.ParseAddr(config.BindAddress)
	if config.BindAddress != "" && ip != netip.IPv6Unspecified() {
		warnings = []string{"field bindAddress has no effect here"}
	}
	if err != nil || !ip.Is6() {
		return warnings
	}
	for name, address := range map[string]string{"healthz-bind-address": "[::]:10256", "metrics-bind-address": "[::1]:10249"} {
		if flag := flags.Lookup(name); flag != nil && !flag.Changed {
			_ = flag.Value.Set(address) // a field of the file replaces it; it is well formed
		}
	}
	return warnings
}

// ofOtherMode returns a warning for each field that only other modes than the one in use have.
func ofOtherMode(config *kubeproxy.KubeProxyConfiguration, flags *pflag.FlagSet) (warnings []string) {
	mode := flags.Lookup("proxy-mode").Value.String()
	names := flagOfField()
	for _, l := range leaves(config) {
		idle := slices.ContainsFunc(table(), func(m modeFlags) bool { return string(m.name) != mode && m.has(l.path) })
		if idle && names[l.path] != "" {
			warnings = append(warnings, fmt.Sprintf("field %s has no effect in mode %s", l.path, mode))
		}
	}
	return warnings
}
