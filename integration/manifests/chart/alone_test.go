package chart

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// kubeletConfig is how the daemon reaches the API server where it has no account.
const kubeletConfig = "--kubeconfig=/etc/kubernetes/kubelet.conf"

func staticPod(t *testing.T) corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	must(t, yaml.UnmarshalStrict([]byte(read(t, folder+"/site-alone/static-pod.yaml")), &pod))
	return pod
}

// wantedPod is the DaemonSet's, without what a static Pod cannot have: an account, and a scheduler.
func wantedPod(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	_, document, _ := strings.Cut(read(t, folder+"/gridproxy.yaml"), "kind: DaemonSet")
	var set appsv1.DaemonSet
	must(t, yaml.Unmarshal([]byte("kind: DaemonSet"+document), &set))
	pod := set.Spec.Template
	pod.Namespace = set.Namespace
	pod.Spec.ServiceAccountName, pod.Spec.Affinity, pod.Spec.NodeSelector = "", nil, nil
	pod.Spec.Priority = new(int32(2000001000))
	initial, daemon := &pod.Spec.InitContainers[0], &pod.Spec.Containers[0]
	servers := func(arg string) bool { return strings.HasPrefix(arg, "--api-servers=") }
	initial.Args = slices.DeleteFunc(initial.Args, servers)
	daemon.Args[slices.IndexFunc(daemon.Args, servers)] = kubeletConfig
	for _, v := range []struct {
		name, path string
		is         corev1.HostPathType
	}{
		{"kubeconfig", "/etc/kubernetes/kubelet.conf", corev1.HostPathFile},
		{"certificate", "/var/lib/kubelet/pki", corev1.HostPathDirectory},
	} {
		daemon.VolumeMounts = append(daemon.VolumeMounts, corev1.VolumeMount{Name: v.name, MountPath: v.path, ReadOnly: true})
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: v.name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: v.path, Type: &v.is}}})
	}
	return pod
}

// TestStaticPod: the static Pod follows the DaemonSet.
func TestStaticPod(t *testing.T) {
	t.Parallel()
	want, pod := wantedPod(t), staticPod(t)
	if diff := cmp.Diff(want.Spec, pod.Spec); diff != "" {
		t.Errorf("deploy/site-alone/static-pod.yaml is not the DaemonSet's Pod (-want +file)\n%s", diff)
	}
	if pod.Namespace != want.Namespace || !cmp.Equal(pod.Labels, want.Labels) {
		t.Errorf("the static Pod is in %s with labels %v", pod.Namespace, pod.Labels)
	}
}

const systemdUnit = folder + "/site-alone/gridproxy.service"

// TestUnitIsVerified: systemd finds nothing wrong with the unit, and something with an altered one.
func TestUnitIsVerified(t *testing.T) {
	t.Parallel()
	need.Systemd(t)
	text := read(t, systemdUnit)
	for name, altered := range map[string]string{
		"": text, "an unknown key": strings.Replace(text, "Restart=", "Restrat=", 1), "an absent program": text + "[Service]\nExecStop=/absent\n",
	} {
		file := filepath.Join(t.TempDir(), "gridproxy.service")
		write(t, file, strings.ReplaceAll(altered, "/usr/local/bin/gridproxy", "/bin/true"))
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", file).CombinedOutput()
		if fine := err == nil && len(out) == 0; fine != (name == "") {
			t.Errorf("systemd-analyze verify, with %q: %v\n%s", name, err, out)
		}
		// 25 of 100: what a root process with NET_ADMIN and the network of the machine comes to.
		if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=yes", "--threshold=25", file).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze security: %v\n%s", err, out)
		}
	}
}

// settings are those of the unit, by their key.
func settings(unit string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(strings.ReplaceAll(unit, "\\\n", "")) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(key, "#") {
			all[key] = append(all[key], value)
		}
	}
	return all
}

// TestUnitIsThePod: the unit has the flags and capabilities of the static Pod, and waits for
// nothing that needs an API server.
func TestUnitIsThePod(t *testing.T) {
	t.Parallel()
	unit, pod := settings(read(t, systemdUnit)), staticPod(t).Spec
	daemon := strings.Fields(unit["ExecStart"][0])[1:]
	var want []string
	for _, arg := range pod.Containers[0].Args {
		if arg != "--node-name=$(NODE_NAME)" { // the unit uses the name of the machine
			want = append(want, strings.Replace(arg, "=auto", "=nft", 1)) // the kubelet may start later
		}
	}
	if diff := cmp.Diff(want, daemon); diff != "" {
		t.Errorf("flags (-static Pod +unit)\n%s", diff)
	}
	prepare := strings.Fields(unit["ExecStartPre"][0])[1:]
	if !slices.Contains(prepare, "--init-only") || slices.Contains(prepare, kubeletConfig) {
		t.Errorf("ExecStartPre: %q", prepare)
	}
	for _, arg := range prepare {
		if arg != "--init-only" && !slices.Contains(daemon, arg) {
			t.Errorf("ExecStartPre has %s, and ExecStart has not", arg)
		}
	}
	var capabilities []string
	for _, c := range pod.Containers[0].SecurityContext.Capabilities.Add {
		capabilities = append(capabilities, "CAP_"+string(c))
	}
	for key, want := range map[string]string{"CapabilityBoundingSet": strings.Join(capabilities, " "), "Restart": "always", "StartLimitIntervalSec": "0"} {
		if got := strings.Join(unit[key], ","); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	after := strings.Join(slices.Concat(unit["After"], unit["Wants"], unit["Requires"]), " ")
	if strings.Contains(after, "online") || strings.Contains(after, "kubelet") {
		t.Errorf("the unit waits for %s", after)
	}
}
