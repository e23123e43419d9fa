package join

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridproxy/topology/excerpt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// flatten is how a user makes a kubeconfig that has everything in it.
const flatten = "make a file with everything in it: kubectl config view --minify --flatten --raw --context NAME"

// ownAccount is what to do where only a program or a person can log in.
const ownAccount = "Flux runs no programs and answers no questions: make a ServiceAccount in the member, and put its token into the kubeconfig"

// portable returns a kubeconfig with the one usable context of text. A program can use it on
// another machine. The error joins what is wrong with its server and its user.
func portable(text []byte) ([]byte, error) {
	if len(text) > kubeconfigMax {
		return nil, fmt.Errorf("it has %d bytes: want at most %d; %s", len(text), kubeconfigMax, flatten)
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, fmt.Errorf("it is not a kubeconfig: %s", excerpt.Message(err.Error()))
	}
	name, err := usableContext(config)
	if err != nil {
		return nil, err
	}
	used := config.Contexts[name]
	cluster, user := config.Clusters[used.Cluster], config.AuthInfos[used.AuthInfo]
	if err := errors.Join(serverFaults(cluster), userFaults(user)); err != nil {
		return nil, err
	}
	kept := api.NewConfig()
	kept.CurrentContext = name
	kept.Contexts[name] = &api.Context{Cluster: used.Cluster, AuthInfo: used.AuthInfo}
	kept.Clusters[used.Cluster], kept.AuthInfos[used.AuthInfo] = cluster, user
	result, err := clientcmd.Write(*kept)
	if err != nil {
		return nil, fmt.Errorf("writing it again: %w", err)
	}
	return result, nil
}

// usableContext returns the name of the one context that has a server and a user. It fails if
// there is no such context, or more than one.
func usableContext(config *api.Config) (string, error) {
	var usable []string
	for name, c := range config.Contexts {
		if c == nil {
			continue
		}
		cluster, user := config.Clusters[c.Cluster], config.AuthInfos[c.AuthInfo]
		if cluster != nil && cluster.Server != "" && user != nil {
			usable = append(usable, name)
		}
	}
	slices.Sort(usable)
	switch len(usable) {
	case 1:
		return usable[0], nil
	case 0:
		return "", errors.New("it has no context with both a server and a user; " + flatten)
	default:
		return "", fmt.Errorf("it has %d contexts (%s): want one; %s", len(usable), excerpt.Of(strings.Join(usable, ", ")), flatten)
	}
}

func serverFaults(c *api.Cluster) error {
	switch {
	case c.CertificateAuthority != "":
		return errors.New("it names the file of a CA certificate; " + flatten)
	case !strings.HasPrefix(c.Server, "https://"):
		return fmt.Errorf("its server is %s: want https://, or the credentials would be sent in the clear", excerpt.Quoted(c.Server))
	case c.ProxyURL != "":
		return errors.New("it has proxy-url, so that another program would decide which server is the member: remove it")
	case c.InsecureSkipTLSVerify:
		return errors.New("it has insecure-skip-tls-verify, with which any server could be the member: put certificate-authority-data in its place")
	default:
		return nil
	}
}

func userFaults(u *api.AuthInfo) error {
	switch {
	case u.Exec != nil || u.AuthProvider != nil:
		return errors.New("it has a program that logs in (exec or auth-provider). " + ownAccount)
	case u.ClientCertificate != "" || u.ClientKey != "" || u.TokenFile != "":
		return errors.New("it names files with credentials; " + flatten)
	case u.Token != "", len(u.ClientCertificateData) > 0 && len(u.ClientKeyData) > 0, u.Username != "" && u.Password != "":
		return nil
	default:
		return errors.New("it has no credentials (token, or client-certificate-data with client-key-data). " + ownAccount)
	}
}
