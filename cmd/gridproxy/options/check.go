package options

import (
	"errors"
	"fmt"
	"strings"

	"gridproxy/rules"
)

// Check returns all errors that no single flag can find, such as flags that exclude each other.
func (o Options) Check() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(o.Manifests) > 0 && o.Kubeconfig != "" {
		wrong("--manifests %s and --kubeconfig %s: give one of them; objects come from files or from an API server", strings.Join(o.Manifests, ","), o.Kubeconfig)
	}
	if servers := printServers(o.APIServers); servers != "" {
		if o.Kubeconfig != "" {
			wrong("--api-servers %s and --kubeconfig %s: give one of them; --api-servers goes with the credentials of a Pod", servers, o.Kubeconfig)
		}
		if len(o.Manifests) > 0 {
			wrong("--api-servers %s and --manifests %s: give one of them; objects come from files or from API servers", servers, strings.Join(o.Manifests, ","))
		}
	}
	for _, m := range o.Manifests {
		if m == "" {
			wrong("--manifests %q: want a file, a directory, or - for standard input", m)
		}
	}
	if o.DetectLocalMode == rules.DetectBridgeInterface && o.PodBridge == "" {
		wrong("--detect-local-mode BridgeInterface: --pod-bridge-interface is empty; name the bridge of this node's Pods")
	}
	if o.DetectLocalMode == rules.DetectInterfaceNamePrefix && o.PodInterfacePrefix == "" {
		wrong("--detect-local-mode InterfaceNamePrefix: --pod-interface-name-prefix is empty; say how the names of the Pods' interfaces start")
	}
	o.checkMode(wrong)
	if o.Verbosity < 0 {
		wrong("--v %d: want 0 or more", o.Verbosity)
	}
	return errors.Join(problems...)
}
