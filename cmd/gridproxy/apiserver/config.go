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

	"gridproxy/topology/regularfile"

	"k8s.io/client-go/rest"
)

// serverName is in the certificate of every API server.
const serverName = "kubernetes.default.svc"

// CredentialsDir is where the kubelet puts the token of a Pod and the CA of its cluster.
const CredentialsDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// maxCredentialBytes bounds a token and a CA bundle.
const maxCredentialBytes = 1 << 20

// Config reaches servers, one at least, with the credentials in dir, in place of what the
// environment says of the API server: that is the cluster IP, which is not there before its
// rules are. Their certificates must be for kubernetes.default.svc, whatever their addresses
// are. Which one is tried first depends on the node's name. The log is New's.
func Config(servers []string, node, dir string, log *slog.Logger) (*rest.Config, error) {
	token, ca := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	for _, file := range []string{token, ca} {
		if _, err := regularfile.Read(file, maxCredentialBytes); err != nil {
			return nil, fmt.Errorf("reading the credentials of this Pod, which --api-servers goes with: %w; give the Pod a service account, or use --kubeconfig where this is none", err)
		}
	}
	dialer := New(orderFor(servers, node), log)
	return &rest.Config{
		Host:            "https://" + serverName,
		BearerTokenFile: token, // read again from time to time, for it expires
		TLSClientConfig: rest.TLSClientConfig{CAFile: ca, ServerName: serverName},
		Dial:            dialer.Dial,
		WrapTransport:   func(next http.RoundTripper) http.RoundTripper { return &roundTripper{next, dialer} },
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil }, //nolint:nilnil // none: the addresses are the servers' own
	}, nil
}

// orderFor are servers in their order, from one on that the node's name picks: the same list is
// given to all nodes, and not all of them should ask its first server.
func orderFor(servers []string, node string) []string {
	sum := sha256.Sum256([]byte(node))
	first := int(binary.BigEndian.Uint32(sum[:]) % uint32(len(servers))) //nolint:gosec // a handful
	return slices.Concat(servers[first:], servers[:first])
}
