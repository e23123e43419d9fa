package apiserver

import (
	"fmt"
	"log/slog"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// RestConfig returns how to connect to the API server. Servers that are abandoned are logged.
func RestConfig(o options.Options, log *slog.Logger) (config *rest.Config, err error) {
	switch {
	case o.Kubeconfig != "":
		if config, err = clientcmd.BuildConfigFromFlags(o.Master, o.Kubeconfig); err != nil {
			return nil, fmt.Errorf("reading --kubeconfig %s: %w", o.Kubeconfig, err)
		}
	case o.Master != "": // without credentials, as in kube-proxy
		if config, err = clientcmd.BuildConfigFromFlags(o.Master, ""); err != nil {
			return nil, fmt.Errorf("using --master %s: %w", o.Master, err)
		}
	case len(o.APIServers) > 0:
		if config, err = Config(o.APIServers, o.NodeName, CredentialsDir, log); err != nil {
			return nil, command.NewUsageError(err)
		}
	default:
		config, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, command.NewUsageError(fmt.Errorf("neither --manifests nor --kubeconfig is given, and this is not a Pod of a cluster (%w): say where Services, EndpointSlices and Nodes come from", err))
	}
	config.QPS, config.Burst = o.KubeQPS, int(o.KubeBurst)
	config.UserAgent = "gridproxy/" + command.ThisBuild().Version
	return config, nil
}
