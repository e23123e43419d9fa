package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"

	"k8s.io/client-go/rest"
)

type contender struct{ name, node, mode string }

// contenders begin with the one that the others are compared with.
func contenders() []contender {
	return []contender{
		{"kube-proxy ipvs", "kube-proxy", "ipvs"},
		{"gridproxy ipvs", "ipvs", "ipvs"},
		{"gridproxy iptables", "iptables", "iptables"},
	}
}

// kubeProxyVariable names the real kube-proxy, which vmexec carries into the guest.
const kubeProxyVariable = "GRIDPROXY_KUBE_PROXY"

func (w *ipvsWorld) start(c contender) (*apiserver.Child, error) {
	node := w.lab.Node(c.node)
	dir := filepath.Join(w.dir, c.node)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	if c.node == "kube-proxy" {
		binary, err := findKubeProxy()
		if err != nil {
			return nil, err
		}
		return apiserver.KubeProxy{
			Tools: apiserver.Tools{Dir: filepath.Dir(binary)}, Mode: c.mode, Dir: dir, Namespace: node, API: &rest.Config{Host: w.api.URL()},
			Node: c.node, Variant: apiserver.Variant(w.variant), ClusterCIDRs: netns.ClusterCIDRs(), Env: node.Env,
		}.Start()
	}
	binary, err := program.Path(context.Background(), program.Gridproxy)
	if err != nil {
		return nil, err
	}
	return startGridproxy(binary, dir, node, &rest.Config{Host: w.api.URL()}, nil,
		"--proxy-mode="+c.mode, "--iptables-variant="+w.variant, "--ipvs-min-sync-period=0s")
}

func findKubeProxy() (string, error) {
	path := os.Getenv(kubeProxyVariable)
	if path == "" {
		return "", fmt.Errorf("%s names no program: run `make bench-ipvs`", kubeProxyVariable)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s: %w", kubeProxyVariable, err)
	}
	return path, nil
}
