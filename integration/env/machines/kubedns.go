package machines

import (
	"context"
	"fmt"
	"net/netip"
	"os"

	"gridproxy/integration/env/apiserver"
)

// DNSAddrs are the cluster IPs of kube-system/kube-dns.
func DNSAddrs() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00:10:96::a")}
}

const corednsName = "docker.io/coredns/coredns:lab"

// CoreDNS makes an image of the real CoreDNS, with the plugins that a cluster's DNS is made of.
func CoreDNS(ctx context.Context, dir string) (Image, error) {
	program, err := apiserver.EnsureCoreDNS(ctx, os.Stderr)
	if err != nil {
		return Image{}, err
	}
	return pack(dir, corednsName, run{Entrypoint: []string{"/coredns"}}, map[string]string{"coredns": program}, nil)
}

// kubeDNSManifest is as kubeadm has it, without a cache: a changed endpoint is in the answers at
// once. The API server is reached by its own address: whoever serves cluster IPs may not be there.
const kubeDNSManifest = `apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:coredns"}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:coredns"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:coredns"}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        health
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
            ttl 30
        }
        prometheus :9153
        forward . %[1]s
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      priorityClassName: system-cluster-critical
      serviceAccountName: coredns
      nodeName: %[2]s
      dnsPolicy: Default
      terminationGracePeriodSeconds: 1
      containers:
      - name: coredns
        image: %[3]s
        args: [-conf, /etc/coredns/Corefile]
        env:
        - {name: KUBERNETES_SERVICE_HOST, value: %[4]q}
        - {name: KUBERNETES_SERVICE_PORT, value: "%[5]d"}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        resources: {requests: {cpu: 100m, memory: 70Mi}, limits: {memory: 170Mi}}
        volumeMounts: [{name: config, mountPath: /etc/coredns}]
      volumes: [{name: config, configMap: {name: coredns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  selector: {k8s-app: kube-dns}
  ipFamilyPolicy: RequireDualStack
  clusterIP: %[6]q
  clusterIPs: [%[6]q, %[7]q]
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
  - {name: metrics, port: 9153, protocol: TCP}
`

// KubeDNS is a manifest of the real CoreDNS as the cluster's DNS, on one machine, which has the
// image of CoreDNS. What is outside of the cluster domain it asks upstream. It requests what
// kubeadm's manifest does: without that a Pod gets no processor time while its machine is busy.
func (c *Cluster) KubeDNS(machine string, upstream netip.Addr) string {
	api, addrs := c.APIServers()[0], DNSAddrs()
	return fmt.Sprintf(kubeDNSManifest, upstream, machine, corednsName, api.Addr().String(), api.Port(), addrs[0].String(), addrs[1].String())
}
