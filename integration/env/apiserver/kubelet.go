package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// machineArgs are the further flags of an API server that real kubelets join.
func (a *APIServer) machineArgs() []string {
	files := a.cluster.files
	return []string{
		"--advertise-address=" + a.Addr.Addr().String(),
		"--allow-privileged=true",
		"--kubelet-client-certificate=" + files["kubelet-client.crt"],
		"--kubelet-client-key=" + files["kubelet-client.key"],
		"--kubelet-preferred-address-types=InternalIP",
	}
}

// writeKubeletClient writes what API servers show to kubelets.
func (c *Cluster) writeKubeletClient() error {
	p, err := c.ca.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"kubelet-client.crt": p.cert, "kubelet-client.key": p.key} {
		c.files[name] = filepath.Join(c.options.Dir, name)
		if err := os.WriteFile(c.files[name], content, 0o600); err != nil {
			return fmt.Errorf("writing the API server's certificate for kubelets: %w", err)
		}
	}
	return nil
}

// addrOf is which of the Addrs the n-th API server uses. Endpoints of default/kubernetes differ in their
// addresses, so where machines join, each server has its own as long as there are some.
func (c *Cluster) addrOf(n int) int {
	if !c.options.Machines {
		return 0
	}
	var same []int
	for i, a := range c.options.Addrs {
		if a.Is4() == c.options.Addrs[0].Is4() {
			same = append(same, i)
		}
	}
	return same[n%len(same)]
}

// ClientCA is the path of the certificate that signs all clients', for kubelets.
func (c *Cluster) ClientCA() string { return c.files["ca.crt"] }

// APIServers are all that were added, those that are stopped too.
func (c *Cluster) APIServers() []*APIServer { return c.servers }
