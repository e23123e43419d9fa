package apiserver

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is a rest.Config as the file that every Kubernetes program reads.
func kubeconfig(config *rest.Config) ([]byte, error) {
	const name = "test"
	file := api.NewConfig()
	file.CurrentContext = name
	file.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	file.Clusters[name] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &api.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	content, err := clientcmd.Write(*file)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return content, nil
}
