package options

import (
	"errors"
	"fmt"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/rules"
)

// Check returns all errors that no single flag can find, such as flags that exclude each other.
func (o Options) Check() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	manifests, servers := strings.Join(o.Manifests, ","), printServers(o.APIServers)
	if len(o.Manifests) > 0 && o.Kubeconfig != "" {
		wrong("--manifests %s and --kubeconfig %s: give one of them; objects come from files or from an API server", manifests, o.Kubeconfig)
	}
	if servers != "" && o.Kubeconfig != "" {
		wrong("--api-servers %s and --kubeconfig %s: give one of them; --api-servers goes with the credentials of a Pod", servers, o.Kubeconfig)
	}
	if servers != "" && len(o.Manifests) > 0 {
		wrong("--api-servers %s and --manifests %s: give one of them; objects come from files or from API servers", servers, manifests)
	}
	for _, m := range o.Manifests {
		if m == "" {
			wrong("--manifests %q: want a file, a directory, or - for standard input", m)
		}
	}
	if o.Master != "" && len(o.Manifests) > 0 {
		wrong("--master %s and --manifests %s: give one of them; objects come from files or from an API server", o.Master, manifests)
	}
	if o.Master != "" && servers != "" {
		wrong("--master %s and --api-servers %s: give one of them; --master replaces the server of --kubeconfig", o.Master, servers)
	}
	if o.WriteConfigTo != "" {
		wrong("--write-config-to %s: gridproxy writes no configuration file; write one with kube-proxy --write-config-to, read it with gridproxy run --config, and see the defaults of gridproxy in gridproxy run --help", o.WriteConfigTo)
	}
	if o.DetectLocalMode == rules.DetectBridgeInterface && o.PodBridge == "" {
		wrong("--detect-local-mode BridgeInterface: --pod-bridge-interface is empty; name the bridge of this node's Pods")
	}
	if o.DetectLocalMode == rules.DetectInterfaceNamePrefix && o.PodInterfacePrefix == "" {
		wrong("--detect-local-mode InterfaceNamePrefix: --pod-interface-name-prefix is empty; say how the names of the Pods' interfaces start")
	}
	o.checkMode(wrong)
	o.checkDNS(wrong)
	if o.Verbosity < 0 {
		wrong("--v %d: want 0 or more", o.Verbosity)
	}
	problems = append(problems, command.CheckPath("state-dir", o.StateDir, "/var/lib/gridproxy"),
		command.CheckPath("status-socket", o.StatusSocket, DefaultStatusSocket), command.CheckPath("names-socket", o.DNS.Socket, defaultDNS().Socket))
	return errors.Join(problems...)
}

// Warnings returns a text for each option that is accepted and is probably a mistake in any
// command.
func (o Options) Warnings() []string { return o.FeatureGates.Warnings() }

// DaemonWarnings returns a text for each option that is accepted, and makes the daemon do less
// than the operator may expect of kube-proxy.
func (o Options) DaemonWarnings() []string {
	var warnings []string
	for _, flag := range o.Ignored {
		warnings = append(warnings, fmt.Sprintf("--%s %s has no effect: %s", flag.Name, flag.Value, flag.Why))
	}
	preset := Defaults()
	warnings = append(warnings, unusedPort("healthz", o.HealthzBindAddress, o.HealthzPort, preset.HealthzPort)...)
	warnings = append(warnings, unusedPort("metrics", o.MetricsBindAddress, o.MetricsPort, preset.MetricsPort)...)
	if o.DetectLocalMode == rules.DetectClusterCIDR && len(o.ClusterCIDRs) == 0 {
		warnings = append(warnings, "--detect-local-mode ClusterCIDR without --cluster-cidr: packets of this node's Pods are not recognised, so that those of clients outside of the cluster are not masqueraded on their way to a cluster IP, and Pods count as outside where externalTrafficPolicy is Local; give --cluster-cidr the ranges of the Pods")
	}
	return warnings
}
