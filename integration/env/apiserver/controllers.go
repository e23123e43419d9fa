package apiserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// ClusterCIDRs are where the controller manager takes the Pod ranges of Nodes from: a /24 and a /64
// each, so up to 256 Nodes.
const ClusterCIDRs = "10.244.0.0/16,fd00:10:244::/56"

// StartControllerManager starts kube-controller-manager with every controller that is on by
// default, and returns when it is healthy; the controllers may still be starting. extra flags come
// last. It ends with Close.
//
// It is not throttled: with its own rate limit of 20 requests a second the start alone takes 4 s longer.
func (c *Cluster) StartControllerManager(ctx context.Context, extra ...string) error {
	api, err := c.component("kube-controller-manager")
	if err != nil {
		return err
	}
	caKey, err := c.writeCAKey()
	if err != nil {
		return err
	}
	args := []string{
		"--kubeconfig=" + api, "--leader-elect=false",
		"--kube-api-qps=1000", "--kube-api-burst=1000",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + c.files["tokens.key"],
		"--root-ca-file=" + c.files["ca.crt"],
		"--cluster-signing-cert-file=" + c.files["ca.crt"], "--cluster-signing-key-file=" + caKey,
		"--allocate-node-cidrs=true", "--cluster-cidr=" + ClusterCIDRs,
		"--node-cidr-mask-size-ipv4=24", "--node-cidr-mask-size-ipv6=64",
		"--service-cluster-ip-range=" + ServiceCIDRs,
		"--node-monitor-period=1s",
	}
	return c.startComponent(ctx, "kube-controller-manager", append(args, extra...))
}

// StartScheduler starts kube-scheduler and returns when it is healthy. A Pod that finds no Node is
// tried again after a second at most, not after the usual ten. It ends with Close.
func (c *Cluster) StartScheduler(ctx context.Context) error {
	api, err := c.component("kube-scheduler")
	if err != nil {
		return err
	}
	file := filepath.Join(c.options.Dir, "kube-scheduler.yaml")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q, qps: 1000, burst: 1000}
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
`, api)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the configuration of kube-scheduler: %w", err)
	}
	return c.startComponent(ctx, "kube-scheduler", []string{"--config=" + file})
}

// component writes the kubeconfig of the user that RBAC's own bindings give a component's rights to.
func (c *Cluster) component(name string) (string, error) {
	config, err := c.User(c.API.Addr, "system:"+name)
	if err != nil {
		return "", err
	}
	return WriteKubeconfig(c.options.Dir, name+".kubeconfig", config)
}

func (c *Cluster) writeCAKey() (string, error) {
	key, err := encodeKey(c.ca.key)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.options.Dir, "ca.key")
	if err := os.WriteFile(path, key, 0o600); err != nil {
		return "", fmt.Errorf("writing the CA's key: %w", err)
	}
	return path, nil
}

// startComponent starts a program that serves /healthz over HTTPS with a certificate of its own.
func (c *Cluster) startComponent(ctx context.Context, name string, args []string) error {
	o := c.options
	ports, err := FreePorts(o.Namespace, 1)
	if err != nil {
		return fmt.Errorf("choosing a port for %s: %w", name, err)
	}
	child, err := StartChild(Spec{
		Name: name, Path: o.Tools.Path(name), Dir: o.Dir, Namespace: o.Namespace, Env: []string{"GOGC=50"},
		Args: append(args, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0].Port())),
	})
	if err != nil {
		return err
	}
	c.children = append(c.children, child)
	transport := &http.Transport{
		DialContext:       Dialer(o.Namespace),
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // it signs its own; we send it no secret
		DisableKeepAlives: true,
	}
	return child.WaitFor(ctx, func(ctx context.Context) error {
		return healthy(ctx, &http.Client{Transport: transport}, "https://"+ports[0].String()+"/healthz")
	})
}
