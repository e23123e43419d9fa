package machines

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"gridproxy/integration/env/apiserver"
)

// kubeProxyManifest is for a cluster whose API server is reached by its own address, since kube-proxy itself
// makes the ClusterIP.
const kubeProxyManifest = `apiVersion: v1
kind: ServiceAccount
metadata: {name: kube-proxy, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kube-proxy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-proxier"}
subjects: [{kind: ServiceAccount, name: kube-proxy, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system, labels: {app: kube-proxy}}
data:
  config.conf: |
%[1]s
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy, namespace: kube-system, labels: {k8s-app: kube-proxy}}
spec:
  selector: {matchLabels: {k8s-app: kube-proxy}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: "100%%"}}
  template:
    metadata: {labels: {k8s-app: kube-proxy}}
    spec:
      priorityClassName: system-node-critical
      serviceAccountName: kube-proxy
      hostNetwork: true
      tolerations: [{operator: Exists}]
      terminationGracePeriodSeconds: 1
      containers:
      - name: kube-proxy
        image: %[2]s
        args: [--config=/var/lib/kube-proxy/config.conf, --hostname-override=$(NODE_NAME), --v=2]
        env:
        - {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: VARIANT, value: %[3]q}
        - {name: KUBERNETES_SERVICE_HOST, value: %[4]q}
        - {name: KUBERNETES_SERVICE_PORT, value: "%[5]d"}
        readinessProbe: {httpGet: {host: 127.0.0.1, port: 10256, path: /healthz}, periodSeconds: 1}
        securityContext: {privileged: true}
        volumeMounts:
        - {name: config, mountPath: /var/lib/kube-proxy}
        - {name: lock, mountPath: /run/xtables.lock}
      volumes:
      - {name: config, configMap: {name: kube-proxy}}
      - {name: lock, hostPath: {path: /run/xtables.lock, type: FileOrCreate}}
`

// KubeProxy is a manifest of the real kube-proxy, as a DaemonSet kube-system/kube-proxy. Its image is put on
// every machine that is on. mode is kube-proxy's; variant "" is what each machine's own iptables is, by the
// hint of its kubelet.
func (c *Cluster) KubeProxy(ctx context.Context, mode string, variant apiserver.Variant) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, apiserver.StartTimeout)
	defer cancel()
	image, err := kubeProxy(ctx, filepath.Join(c.options.Dir, "machines"), c.tools)
	if err != nil {
		return "", err
	}
	err = c.each(func(m *Machine) error {
		if m.init == nil {
			return nil
		}
		return m.Import(ctx, image)
	})
	if err != nil {
		return "", err
	}
	config, err := apiserver.KubeProxy{Mode: mode, ClusterCIDRs: ClusterCIDRs}.Config("")
	if err != nil {
		return "", err
	}
	api := c.APIServers()[0]
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(string(config)), "\n", "\n    ")
	return fmt.Sprintf(kubeProxyManifest, indented, kubeProxyName, string(variant), api.Addr().String(), api.Port()), nil
}
