package machines

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kubeletConfig is for a computer with control groups of either version, with swap or without, whose memory and
// disk are not the cluster's to watch.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %q}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://` + socket + `
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
resolvConf: ""
volumePluginDir: /var/lib/kubelet/volume-plugins
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
serializeImagePulls: false
registerNode: true
staticPodPath: ` + Kubernetes + `/manifests
nodeStatusUpdateFrequency: %s
nodeStatusReportFrequency: %s
nodeLeaseDurationSeconds: %d
syncFrequency: 10s
`

// Kubernetes is where a machine has what others have in /etc/kubernetes, since its disk is
// /var/lib: kubelet.conf, with which its kubelet reaches the API server, and manifests, the folder
// of static Pods.
const Kubernetes = "/var/lib/kubernetes"

// kubelet writes its configuration and says how to start it. It needs a kubeconfig too, which is written when the
// control plane is up.
func (m *Machine) kubelet(program, clientCA string, grace time.Duration) (bootService, error) {
	status, lease := 10*time.Second, 40
	if grace > 0 {
		status, lease = min(status, grace/4), min(lease, max(1, int(grace/time.Second)))
	}
	file := filepath.Join(m.dir, "kubelet.yaml")
	text := fmt.Sprintf(kubeletConfig, clientCA, status, status, lease)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return bootService{}, fmt.Errorf("writing the configuration of the kubelet on %s: %w", m.Name, err)
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(m.spec.Labels)) {
		labels = append(labels, key+"="+m.spec.Labels[key])
	}
	return bootService{
		Path: program, Called: m.Name + "/kubelet", Log: m.log("kubelet"),
		Args: []string{
			"--config=" + file, "--kubeconfig=" + m.kubeconfig(), "--hostname-override=" + m.Name,
			fmt.Sprintf("--node-ip=%s,%s", fabricAddr4(m.number), fabricAddr6(m.number)),
			"--node-labels=" + strings.Join(labels, ","), "--v=2",
		},
	}, nil
}
