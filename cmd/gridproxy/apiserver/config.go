package apiserver

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology/regularfile"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// serverName is in the certificate of every API server.
const serverName = "kubernetes.default.svc"

// CredentialsDir is where the kubelet puts the token of a Pod and the CA of its cluster.
const CredentialsDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config returns how to connect to servers, HOST:PORT and at least one, with the credentials in
// dir, which it reads. They replace the address in the environment, which is the cluster IP:
// this daemon has to write its rules first. The servers' certificates must be for
// kubernetes.default.svc, independent of their addresses. The node's name decides which server
// is tried first. The log is that of New.
func Config(servers []string, node, dir string, log *slog.Logger) (*rest.Config, error) {
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	for _, file := range []string{token, ca} {
		if _, err := regularfile.Read(file, credentialMax); err != nil {
			return nil, fmt.Errorf("reading the credentials of this Pod, which --api-servers goes with: %w; give the Pod a service account, or use --kubeconfig where this is none", err)
		}
	}
	dialer := New(orderFor(servers, node), log)
	return &rest.Config{
		Host:            "https://" + serverName,
		BearerTokenFile: token, // client-go reads it again before it expires
		TLSClientConfig: rest.TLSClientConfig{CAFile: ca, ServerName: serverName},
		Dial:            dialer.Dial,
		WrapTransport:   func(next http.RoundTripper) http.RoundTripper { return &roundTripper{next, dialer, readTimeout} },
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil }, //nolint:nilnil // no HTTP proxy: the addresses are the servers' own
	}, nil
}

// orderFor returns the list of servers, starting at an index derived from the node's name. All
// nodes have the same list, and not all of them should use its first server.
func orderFor(servers []string, node string) []string {
	sum := sha256.Sum256([]byte(node))
	first := int(binary.BigEndian.Uint32(sum[:]) % uint32(len(servers))) //nolint:gosec // a handful
	return slices.Concat(servers[first:], servers[:first])
}

// RestConfig returns how to connect to the API server that the options name, or to that of the
// Pod's cluster. It connects to none. Servers that are abandoned later are logged.
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
