package apiserver

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	componentconfig "k8s.io/component-base/config/v1alpha1"
	"k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"
)

// Variant is one of the two mechanisms that the iptables tools can write to.
type Variant string

// The variants.
const (
	NFT    Variant = "nft"
	Legacy Variant = "legacy"
)

// KubeProxy says how to run the real kube-proxy.
type KubeProxy struct {
	Tools         Tools
	Mode          string // as kube-proxy's --proxy-mode: iptables, ipvs; "" = iptables
	Dir           string // for its configuration and log
	Namespace     Namespace
	API           *rest.Config
	Node          string // a Node object with addresses must exist
	Variant       Variant
	ClusterCIDRs  string // of Pods, as kube-proxy's clusterCIDR
	MinSyncPeriod time.Duration
	Env           []string
}

// Start starts kube-proxy. Namespaces may not set the machine's connection-tracking limits, so its
// configuration leaves them alone; it serves /healthz and /metrics on the namespace's loopback.
func (k KubeProxy) Start() (*Child, error) {
	bin, err := VariantPath(k.Dir, k.Variant)
	if err != nil {
		return nil, err
	}
	api, err := WriteKubeconfig(k.Dir, "kube-proxy.kubeconfig", k.API)
	if err != nil {
		return nil, err
	}
	config, err := k.Config(api)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(k.Dir, "kube-proxy.yaml")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return nil, fmt.Errorf("writing kube-proxy's configuration: %w", err)
	}
	return StartChild(Spec{
		Name: "kube-proxy", Path: k.Tools.Path("kube-proxy"), Dir: k.Dir, Namespace: k.Namespace,
		Args: []string{"--config=" + file, "--hostname-override=" + k.Node, "--v=2"},
		Env:  append([]string{"PATH=" + bin + ":" + os.Getenv("PATH")}, k.Env...),
	})
}

// Config is its configuration file, with the path of a kubeconfig; "": it runs in a Pod.
func (k KubeProxy) Config(kubeconfig string) ([]byte, error) {
	config, err := yaml.Marshal(k.configuration(kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("encoding kube-proxy's configuration: %w", err)
	}
	return config, nil
}

func (k KubeProxy) configuration(kubeconfig string) *v1alpha1.KubeProxyConfiguration {
	zero := int32(0)
	localhost := true
	return &v1alpha1.KubeProxyConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "KubeProxyConfiguration"},
		ClientConnection: componentconfig.ClientConnectionConfiguration{
			Kubeconfig: kubeconfig, ContentType: "application/vnd.kubernetes.protobuf", QPS: 50, Burst: 100,
		},
		Mode:               v1alpha1.ProxyMode(cmp.Or(k.Mode, "iptables")),
		ClusterCIDR:        k.ClusterCIDRs,
		DetectLocalMode:    "ClusterCIDR",
		BindAddress:        "0.0.0.0",
		HealthzBindAddress: "127.0.0.1:10256",
		MetricsBindAddress: "127.0.0.1:10249",
		Conntrack: v1alpha1.KubeProxyConntrackConfiguration{
			MaxPerCore: &zero, Min: &zero,
			TCPEstablishedTimeout: &metav1.Duration{}, TCPCloseWaitTimeout: &metav1.Duration{},
		},
		IPTables: v1alpha1.KubeProxyIPTablesConfiguration{
			LocalhostNodePorts: &localhost,
			SyncPeriod:         metav1.Duration{Duration: 30 * time.Second},
			MinSyncPeriod:      metav1.Duration{Duration: k.MinSyncPeriod},
		},
		IPVS: v1alpha1.KubeProxyIPVSConfiguration{
			SyncPeriod:    metav1.Duration{Duration: 30 * time.Second},
			MinSyncPeriod: metav1.Duration{Duration: k.MinSyncPeriod},
		},
	}
}

// VariantPath makes a folder bin-VARIANT in another one, in which iptables and its relatives are one variant's: whoever has it
// first in PATH uses that, as on a machine whose alternatives are set so.
func VariantPath(dir string, v Variant) (string, error) {
	bin := filepath.Join(dir, "bin-"+string(v))
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("making a folder of tools: %w", err)
	}
	multi, err := findTool("xtables-" + string(v) + "-multi")
	if err != nil {
		return "", err
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		for _, kind := range []string{"", "-save", "-restore"} {
			link := filepath.Join(bin, tool+kind)
			if err := os.Symlink(multi, link); err != nil && !os.IsExist(err) {
				return "", fmt.Errorf("linking %s: %w", link, err)
			}
		}
	}
	return bin, nil
}

func findTool(name string) (string, error) {
	for _, dir := range strings.Split(os.Getenv("PATH")+":/usr/sbin:/sbin", ":") {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s in PATH: install the package iptables", name)
}
