package machines

import (
	"fmt"
	"os"
	"path/filepath"

	"gridproxy/integration/env/apiserver"
)

// socket is containerd's. It is not at the usual place: there the kubelet's cAdvisor would ask containerd about
// every group of containers that it comes across, 3 s each.
const socket = "/run/ctr/ctr.sock"

// containerdConfig: images come from files only, and a container may not ask for a better oom_score_adj than its
// parent's, for which pid 1 may lack the right.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
address = %[1]q

[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = %[2]q

[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %[3]q
SystemdCgroup = false

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%[4]q]
conf_dir = "/run/cni/net.d"
conf_template = %[5]q
`

// networkTemplate becomes the machine's network configuration once its Node has ranges of addresses. Nothing is
// masqueraded in it: all of the fabric knows the way to all Pods.
const networkTemplate = `{
  "cniVersion": "1.0.0", "name": "pods",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "ipMasq": false, "hairpinMode": true,
      "ipam": {
        "type": "host-local", "dataDir": "/run/cni/addresses",
        "ranges": [{{range $i, $r := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$r}}"}]{{end}}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// containerd writes its configuration and says how to start it.
func containerd(dir, name string, runtime apiserver.Tools, log string) (bootService, error) {
	template := filepath.Join(dir, "network.json")
	if err := os.WriteFile(template, []byte(networkTemplate), 0o644); err != nil {
		return bootService{}, fmt.Errorf("writing the network configuration of %s: %w", name, err)
	}
	config := filepath.Join(dir, "containerd.toml")
	text := fmt.Sprintf(containerdConfig, socket, pauseName, runtime.Path("runc"), runtime.Dir, template)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return bootService{}, fmt.Errorf("writing the configuration of containerd on %s: %w", name, err)
	}
	return bootService{
		Path: runtime.Path("containerd"), Called: name + "/containerd", Args: []string{"--config=" + config, "--log-level=warn"},
		Log: log,
	}, nil
}
