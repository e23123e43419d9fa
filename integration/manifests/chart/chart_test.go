package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const folder = "../../../deploy"

func newHelm(t *testing.T) Helm {
	t.Helper()
	h, err := New(t.Context(), os.Stderr, t.TempDir())
	must(t, err)
	return h
}

// TestPlainManifests: the files in deploy are what make generate writes.
func TestPlainManifests(t *testing.T) {
	t.Parallel()
	files, err := Plain(t.Context(), newHelm(t))
	must(t, err)
	for name, want := range files {
		if diff := cmp.Diff(want, read(t, filepath.Join(folder, name))); diff != "" {
			t.Errorf("deploy/%s is not what the chart makes (-chart +file): run make generate\n%s", name, diff)
		}
		for _, p := range placeholders() {
			if marked := strings.Count(want, "# EDIT: "+p.edit); marked != strings.Count(want, p.text) {
				t.Errorf("deploy/%s: of %d times %q, %d are marked", name, strings.Count(want, p.text), p.text, marked)
			}
		}
	}
	if !strings.Contains(files["gridproxy.yaml"], "# EDIT") {
		t.Error("nothing is marked EDIT")
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	out, err := h.Do(t.Context(), "lint", "--strict", h.Chart)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRefuses: a wrong value is refused with its place, and values that do not go together with
// what to do.
func TestRefuses(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	for _, c := range []struct{ values, words string }{
		{`apiServers=["10.0.0.1"]`, "at '/apiServers/0'"},
		{`apiServers=["https://10.0.0.1:6443"]`, "at '/apiServers/0'"},
		{`apiServers=["fd00::1:6443"]`, "at '/apiServers/0'"},
		{`apiServers="10.0.0.1:6443"`, "at '/apiServers': got string, want array"},
		{`apiServers=["10.0.0.1:65536"]`, "at '/apiServers/0'"},
		{`apiServers=["10.0.0.1:99999"]`, "at '/apiServers/0'"},
		{`apiServers=["10.0.0.1:0"]`, "at '/apiServers/0'"},
		{`clusterCIDR="10.244.0.0"`, "at '/clusterCIDR'"},
		{`clusterCIDR="10.244.0.0/16,\u0020fd00::/56"`, "at '/clusterCIDR'"},
		{`clusterCIDR="10.244.0.0/129"`, "at '/clusterCIDR'"},
		{`clusterCIDR="10.244.0.0/33"`, "clusterCIDR has 10.244.0.0/33, which is no range of addresses: its prefix is longer than 32 bits"},
		{`clusterCIDR="10.300.0.0/16"`, "clusterCIDR has 10.300.0.0/16, which is no range of addresses: 300 is more than 255"},
		{`clusterCIDR="10.0244.0.0/16"`, "0244 is more than 255"},
		{`clusterCIDR="10.044.0.0/16"`, "044 begins with 0"},
		{`clusterCIDR="10.244.0/16"`, "it is neither an IPv4 nor an IPv6 address"},
		{`clusterCIDR="10.244.1.0/16"`, "bits after the prefix are set"},
		{`clusterCIDR="10.244.0.1/31"`, "bits after the prefix are set"},
		{`clusterCIDR="10.244.0.0/16,fd00:10:244::1/56"`, "clusterCIDR has fd00:10:244::1/56, which is no range of addresses: bits after the prefix are set"},
		{`clusterCIDR="fd00:10:244:00ff::/56"`, "bits after the prefix are set"},
		{`clusterCIDR="fd00::10::/56"`, ":: is there twice"},
		{`clusterCIDR="fd00:::/56"`, ":: is there twice"},
		{`clusterCIDR="fd00:10:244/56"`, "an IPv6 address has eight groups, and this one has 3"},
		{`clusterCIDR="1:2:3:4:5:6:7:8::/56"`, "an IPv6 address has eight groups"},
		{`clusterCIDR="fd00:10244::/56"`, "10244 has more than four digits"},
		{`clusterCIDR="::ffff:10.0.0.0/104"`, "an IPv4 address inside of an IPv6 one"},
		{`apiServers=["10.0.0.300:6443"]`, "apiServers has 10.0.0.300:6443, whose host is no address: 300 is more than 255"},
		{`apiServers=["10.0.0:6443"]`, "an IPv4 address has four numbers"},
		{`apiServers=["[fd00:1]:6443"]`, "an IPv6 address has eight groups"},
		{`monitoring.podMonitor=true`, "at '/monitoring/podMonitor': got boolean, want object"},
		{`monitoring.podMonitor.interval="often"`, "at '/monitoring/podMonitor/interval'"},
		{`monitoring.serviceMonitor=true monitoring.podMonitor.enabled=true`, "every Pod would be scraped twice: set one to false"},
		{`monitoring.podMonitor.enabled=true daemon.extraArgs=["--metrics-bind-address=0.0.0.0:20249"]`, "and the PodMonitor does not follow: set daemon.metricsPort"},
		{`proxyMode="nftables"`, "at '/proxyMode': value must be one of 'iptables', 'ipvs'"},
		{`iptablesVariant="nf_tables"`, "at '/iptablesVariant': value must be one of"},
		{`daemon.sahdow=true`, "at '/daemon': additional properties 'sahdow' not allowed"},
		{`replicas=3`, "additional properties 'replicas' not allowed"},
		{`daemon.shadow="true"`, "at '/daemon/shadow': got string, want boolean"},
		{`daemon.serviceProxyName="my\u0020proxy"`, "at '/daemon/serviceProxyName'"},
		{`daemon.maxUnavailable=0`, "at '/daemon/maxUnavailable'"},
		{`daemon.maxUnavailable="half"`, "at '/daemon/maxUnavailable'"},
		{`daemon.updateStrategy="Recreate"`, "at '/daemon/updateStrategy': value must be one of 'RollingUpdate', 'OnDelete'"},
		{`daemon.privilegedInit="no"`, "at '/daemon/privilegedInit': got string, want boolean"},
		{`daemon.podSecurityContext=[]`, "at '/daemon/podSecurityContext': got array, want object"},
		{`daemon.leaveOutNodes="two\u0020words"`, "at '/daemon/leaveOutNodes'"},
		{`daemon.healthzPort=70000`, "at '/daemon/healthzPort': maximum"},
		{`daemon.extraArgs=["v=1"]`, "at '/daemon/extraArgs/0'"},
		{`daemon.resources.request={}`, "at '/daemon/resources': additional properties 'request' not allowed"},
		{`controller.replicas="2"`, "at '/controller/replicas': got string, want integer"},
		{`controller.namespaces=["a"]`, "controller.namespaces needs controller.nodeUnits: false"},
		{`controller.nodeUnits=false controller.namespaces=["A"]`, "at '/controller/namespaces/0'"},
		{`controller.nodeUnits="no"`, "at '/controller/nodeUnits': got string, want boolean"},
		{`federation.mode="both"`, "at '/federation/mode': value must be one of 'off', 'hub', 'member'"},
		{`federation.mode="hub" federation.fluxNamespace=""`, "at '/federation/fluxNamespace'"},
		{`federation.mode="hub" controller.enabled=false`, "federation.mode is hub, which needs controller.enabled: true"},
		{`federation.mode="member" controller.nodeUnits=false controller.namespaces=["a"]`, "federation.mode needs controller.namespaces: []"},
		{`controller.extraArgs=["--federation=hub"]`, "controller.extraArgs has a flag that the value federation.mode is for"},
		{`image.tag=""`, "at '/image/tag'"},
		{`image.pullPolicy="Sometimes"`, "at '/image/pullPolicy'"},
		{`crds.keep=false`, "at '/crds': additional properties 'keep' not allowed"},
		{`monitoring.interval="often"`, "at '/monitoring/interval'"},

		{`dns.address="169.254.20.12"`, "at '/dns': additional properties 'address' not allowed"},
		{`dns.addresses=[]`, "at '/dns/addresses': minItems"},
		{`dns.addresses=["169.254.20.300"]`, "dns.addresses has 169.254.20.300, which is no address: 300 is more than 255"},
		{`dns.addresses=["169.254.20"]`, "an IPv4 address has four numbers"},
		{`dns.addresses=["fd00::1::2"]`, "dns.addresses has fd00::1::2, which is no address: :: is there twice"},
		{`dns.addresses=["169.254.20.12","169.254.20.13"]`, "dns.addresses has 169.254.20.12 and 169.254.20.13: leave one of them out"},
		{`dns.service="kube-dns"`, "at '/dns/service'"},
		{`dns.clusterDomain="cluster.local."`, "at '/dns/clusterDomain'"},
		{`dns.whenAway="open"`, "at '/dns/whenAway': value must be one of 'cluster', 'refuse'"},
		{`dns.enabled=true daemon.shadow=true`, "dns.enabled does not go with daemon.shadow"},
		{`dns.enabled=true daemon.serviceProxyName="trial"`, "dns.enabled does not go with daemon.shadow and daemon.serviceProxyName"},
		{`dns.enabled=true dns.whenAway="refuse" dns.nodeSelector={"trial":"yes"}`, "the Nodes without grid-dns would have no DNS"},
		{`dns.enabled=true dns.nodeSelector={"a":"b"} daemon.nodeSelector={"a":"c"}`, "dns.nodeSelector has a=b, and daemon.nodeSelector a=c: no Node has both"},
		{`dns.enabled=true dns.metricsPort=10249`, "dns.metricsPort is 10249, which the daemon has too"},
		{`dns.enabled=true daemon.extraArgs=["--names-socket=/run/other"]`, "daemon.extraArgs has --names-socket=/run/other, and grid-dns does not follow"},
		{`daemon.extraArgs=["--local-dns"]`, "daemon.extraArgs has a flag that the value dns.enabled is for"},
		{`daemon.extraArgs=["--cluster_domain=example"]`, "daemon.extraArgs has a flag that the value dns.clusterDomain is for"},

		{`proxyMode="ipvs" daemon.serviceProxyName="trial"`, "set proxyMode to iptables for the trial"},
		{`daemon.healthzPort=10249`, "daemon.healthzPort and daemon.metricsPort are both 10249"},
		{`daemon.shadow=true daemon.metricsPort=10356`, "daemon.healthzPort and daemon.metricsPort are both 10356"},
		{`daemon.extraArgs=["--healthz-bind-address=0.0.0.0:20256"]`, "daemon.extraArgs has --healthz-bind-address=0.0.0.0:20256, and the probes do not follow: set daemon.healthzPort"},
		{`daemon.extraArgs=["--healthz-port=0"]`, "daemon.extraArgs has --healthz-port=0, and the probes do not follow: set daemon.healthzPort"},
		{`daemon.extraArgs=["--healthz_bind_address=0.0.0.0:20256"]`, "daemon.extraArgs has --healthz_bind_address=0.0.0.0:20256, and the probes do not follow"},
		{`daemon.extraArgs=["--cluster_cidr=10.0.0.0/8"]`, "daemon.extraArgs has a flag that the value clusterCIDR is for"},
		{`daemon.extraArgs=["--shadow"]`, "daemon.extraArgs has a flag that the value daemon.shadow is for"},
		{`controller.extraArgs=["--node-units=false"]`, "controller.extraArgs has a flag that the value controller.nodeUnits is for"},
		{`image.digest="sha256:12"`, "at '/image/digest'"},
		{`daemon.podLabels={"app.kubernetes.io/name":"mine"}`, "daemon.podLabels has app.kubernetes.io/name, by which the Pods are found"},
		{`daemon.extraEnv=[{"name":"NODE_NAME","value":"x"}]`, "at '/daemon/extraEnv/0/name'"},
		{`daemon.extraArgs=["--cleanup"]`, "daemon.extraArgs has --cleanup, with which the daemon would exit"},
		{`daemon.extraArgs=["--init_only=true"]`, "daemon.extraArgs has --init_only=true, with which the daemon would exit"},
		{`controller.extraArgs=["--healthz-bind-address=:9081"]`, "controller.extraArgs has --healthz-bind-address=:9081, and the probes do not follow"},
		{`monitoring.serviceMonitor=true daemon.extraArgs=["--metrics-bind-address=0.0.0.0:20249"]`, "daemon.extraArgs has --metrics-bind-address=0.0.0.0:20249, and the ServiceMonitor does not follow: set daemon.metricsPort"},
		{`monitoring.serviceMonitor=true controller.extraArgs=["--metrics-bind-address=:9080"]`, "controller.extraArgs has --metrics-bind-address=:9080, and the ServiceMonitor does not follow"},
	} {
		if _, err := h.Template(t.Context(), strings.Fields(c.values)...); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: want an error with %q, got: %v", c.values, c.words, err)
		}
	}
}

// objects are those that the chart makes of some values, by KIND/NAME.
func objects(t *testing.T, h Helm, values ...string) map[string]unstructured.Unstructured {
	t.Helper()
	text, err := h.Template(t.Context(), values...)
	must(t, err)
	all := map[string]unstructured.Unstructured{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.UnmarshalStrict([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if o.Object == nil {
			continue
		}
		name := o.GetKind() + "/" + o.GetName()
		if _, twice := all[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		all[name] = o
	}
	return all
}

// at follows a path of fields and indexes, such as spec.containers.0.args.
func at(t *testing.T, o unstructured.Unstructured, path string) any {
	t.Helper()
	var here any = o.Object
	for _, step := range strings.Split(path, ".") {
		switch v := here.(type) {
		case map[string]any:
			here = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			here = v[i]
		default:
			return nil
		}
	}
	return here
}

// TestWithoutNodeUnits: without NodeUnits, the controller has no right that concerns them, and none
// to change Nodes.
func TestWithoutNodeUnits(t *testing.T) {
	t.Parallel()
	role := objects(t, newHelm(t), `controller.nodeUnits=false`)["ClusterRole/grid-controller"]
	rules := fmt.Sprint(at(t, role, "rules"))
	if strings.Contains(rules, "site.superedge.io") {
		t.Errorf("a right for NodeUnits or NodeGroups is left: %s", rules)
	}
	if !strings.Contains(rules, "map[apiGroups:[] resources:[nodes] verbs:[list watch]]") || strings.Count(rules, "nodes") != 1 {
		t.Errorf("the rights for Nodes are not list and watch: %s", rules)
	}
}

// TestNamespaces: outside the namespaces the controller may read Nodes and definitions, and
// nothing else.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	all := objects(t, newHelm(t), `controller.nodeUnits=false`, `controller.namespaces=["a"]`)
	if all["ClusterRoleBinding/grid-controller"].Object != nil {
		t.Error("the whole role is bound in all namespaces")
	}
	if got := fmt.Sprint(at(t, all["ClusterRoleBinding/grid-controller-cluster"], "roleRef.name")); got != "grid-controller-cluster" {
		t.Errorf("the role %s is bound in the cluster", got)
	}
	if rules := fmt.Sprint(at(t, all["ClusterRole/grid-controller-cluster"], "rules")); strings.Contains(rules, "deployments") || strings.Contains(rules, "patch") {
		t.Errorf("the rights in the cluster are %s", rules)
	}
	if got := fmt.Sprint(at(t, all["RoleBinding/grid-controller-children"], "roleRef.name")); got != "grid-controller" {
		t.Errorf("the role %s is bound in the namespaces", got)
	}
	if got := fmt.Sprint(at(t, all["Deployment/grid-controller"], "spec.template.spec.containers.0.args")); got != "[run --node-units=false --namespaces=a]" {
		t.Errorf("the arguments are %s", got)
	}
}

// TestValues: what each value comes to.
func TestValues(t *testing.T) {
	t.Parallel()
	const (
		daemon, controller = "DaemonSet/gridproxy", "Deployment/grid-controller"
		pod                = "spec.template.spec."
		flags              = pod + "containers.0.args"
		initFlags          = pod + "initContainers.0.args"
	)
	wantFields(t, []valueCase{
		{``, daemon, flags, `[run --node-name=$(NODE_NAME) --proxy-mode=iptables --iptables-variant=auto ` +
			`--healthz-bind-address=0.0.0.0:10256 --metrics-bind-address=127.0.0.1:10249 --state-dir=/var/lib/gridproxy]`},
		{``, daemon, initFlags, `[run --init-only --node-name=$(NODE_NAME) --proxy-mode=iptables --iptables-variant=auto ` +
			`--healthz-bind-address=0.0.0.0:10256 --metrics-bind-address=127.0.0.1:10249]`},
		{``, daemon, pod + "containers.0.securityContext", `map[allowPrivilegeEscalation:false capabilities:map[add:[NET_ADMIN NET_RAW] drop:[ALL]] readOnlyRootFilesystem:true]`},
		{`iptablesVariant="nft"`, daemon, pod + "containers.0.securityContext.capabilities.add", `[NET_ADMIN NET_RAW]`}, // it reads rules about sets
		{``, daemon, pod + "securityContext", `map[seccompProfile:map[type:RuntimeDefault]]`},
		{`daemon.podSecurityContext={"seLinuxOptions":{"type":"spc_t"}}`, daemon, pod + "securityContext", `map[seLinuxOptions:map[type:spc_t] seccompProfile:map[type:RuntimeDefault]]`},
		{``, daemon, pod + "hostNetwork", "true"},
		{``, daemon, pod + "priorityClassName", "system-node-critical"},
		{``, daemon, pod + "tolerations", "[map[operator:Exists]]"},
		{``, daemon, "spec.updateStrategy.rollingUpdate.maxUnavailable", "10%"},
		{``, daemon, pod + "volumes.1", "map[hostPath:map[path:/run/gridproxy type:DirectoryOrCreate] name:state]"},
		{``, daemon, pod + "containers.0.volumeMounts.1", "map[mountPath:/run/gridproxy name:state]"},
		{``, daemon, pod + "volumes.2", "map[hostPath:map[path:/var/lib/gridproxy type:DirectoryOrCreate] name:saved]"},
		{``, daemon, pod + "containers.0.volumeMounts.2", "map[mountPath:/var/lib/gridproxy name:saved]"},
		{``, daemon, pod + "initContainers.0.volumeMounts.2", "<nil>"},
		{`daemon.stateDir=""`, daemon, pod + "volumes.2", "<nil>"},
		{`daemon.stateDir=""`, daemon, flags + ".6", "<nil>"},
		{`daemon.stateDir="/data/gridproxy"`, daemon, flags + ".6", "--state-dir=/data/gridproxy"},
		{`daemon.maxUnavailable=1`, daemon, "spec.updateStrategy.rollingUpdate.maxUnavailable", "1"},
		{`daemon.updateStrategy="OnDelete"`, daemon, "spec.updateStrategy", "map[type:OnDelete]"},
		{`apiServers=["10.0.0.1:65535","10.0.0.1:10000","10.0.0.1:1"]`, daemon, flags + ".2", "--api-servers=10.0.0.1:65535,10.0.0.1:10000,10.0.0.1:1"},
		{`apiServers=["10.0.0.1:6443","[fd00::1]:6443","api.example:443"]`, daemon, flags + ".2", "--api-servers=10.0.0.1:6443,[fd00::1]:6443,api.example:443"},
		{`clusterCIDR="10.244.0.0/16,fd00:10:244::/56"`, daemon, flags + ".2", "--cluster-cidr=10.244.0.0/16,fd00:10:244::/56"},
		{`clusterCIDR="0.0.0.0/0,::/0"`, daemon, flags + ".2", "--cluster-cidr=0.0.0.0/0,::/0"},
		{`clusterCIDR="10.244.255.254/31,fd00::ff00:0:0/96"`, daemon, flags + ".2", "--cluster-cidr=10.244.255.254/31,fd00::ff00:0:0/96"},
		{`clusterCIDR="255.255.255.255/32,1:2:3:4:5:6:7:8/128"`, daemon, flags + ".2", "--cluster-cidr=255.255.255.255/32,1:2:3:4:5:6:7:8/128"},
		{`clusterCIDR="fd00:10:244:ff00::/56"`, daemon, flags + ".2", "--cluster-cidr=fd00:10:244:ff00::/56"},
		{`apiServers=["[::1]:6443"]`, daemon, flags + ".2", "--api-servers=[::1]:6443"},
		{`proxyMode="ipvs"`, daemon, pod + "volumes.2", "map[hostPath:map[path:/lib/modules] name:modules]"},
		{`proxyMode="ipvs"`, daemon, pod + "containers.0.volumeMounts.2", "map[mountPath:/var/lib/gridproxy name:saved]"},
		{`proxyMode="ipvs"`, daemon, pod + "initContainers.0.volumeMounts.2", "map[mountPath:/lib/modules name:modules readOnly:true]"},
		{`iptablesVariant="legacy"`, daemon, pod + "volumes.2", "map[hostPath:map[path:/lib/modules] name:modules]"},
		{`iptablesVariant="legacy"`, daemon, pod + "containers.0.volumeMounts.2", "map[mountPath:/var/lib/gridproxy name:saved]"},
		{`iptablesVariant="legacy"`, daemon, pod + "initContainers.0.volumeMounts.2", "map[mountPath:/lib/modules name:modules readOnly:true]"},
		{`iptablesVariant="legacy" daemon.shadow=true`, daemon, pod + "volumes.2", "<nil>"},
		{`daemon.privilegedInit=false`, daemon, pod + "initContainers", "<nil>"},
		{`daemon.privilegedInit=false proxyMode="ipvs"`, daemon, pod + "volumes.2", "map[hostPath:map[path:/var/lib/gridproxy type:DirectoryOrCreate] name:saved]"},
		{``, daemon, pod + "initContainers.0.resources", "map[limits:map[memory:1Gi] requests:map[cpu:20m memory:64Mi]]"}, // as the daemon's: more for neither
		{`daemon.shadow=true`, daemon, flags, `[run --shadow --node-name=$(NODE_NAME) --proxy-mode=iptables --iptables-variant=auto ` +
			`--healthz-bind-address=0.0.0.0:10356 --metrics-bind-address=127.0.0.1:10349]`},
		{`daemon.shadow=true`, daemon, pod + "initContainers", "<nil>"},
		{`daemon.shadow=true`, daemon, pod + "containers.0.readinessProbe.httpGet.port", "10356"},
		{`daemon.serviceProxyName="trial"`, daemon, flags, `[run --node-name=$(NODE_NAME) --proxy-mode=iptables --iptables-variant=auto ` +
			`--service-proxy-name=trial --healthz-bind-address=0.0.0.0:10356 --metrics-bind-address=127.0.0.1:10349 --state-dir=/var/lib/gridproxy]`},
		{`daemon.serviceProxyName="trial"`, daemon, pod + "initContainers", "<nil>"},
		{`daemon.shadow=true daemon.healthzPort=20256`, daemon, pod + "containers.0.livenessProbe.httpGet.port", "20256"},
		{`daemon={"extraArgs":["--v=1"],"nodeSelector":{"edge":"yes"},"tolerations":[]}`, daemon, pod + "nodeSelector", "map[edge:yes kubernetes.io/os:linux]"},
		{`daemon={"extraArgs":["--v=1"],"nodeSelector":{"edge":"yes"},"tolerations":[]}`, daemon, pod + "tolerations", "<nil>"},
		{`image.digest="sha256:` + strings.Repeat("0a", 32) + `"`, daemon, pod + "containers.0.image", "gridproxy@sha256:" + strings.Repeat("0a", 32)},
		{`daemon.podLabels={"team":"edge","app.kubernetes.io/version":"mine"}`, daemon, "spec.template.metadata.labels", "map[app.kubernetes.io/instance:gridproxy " +
			"app.kubernetes.io/managed-by:Helm app.kubernetes.io/name:gridproxy app.kubernetes.io/part-of:gridproxy app.kubernetes.io/version:mine team:edge]"},
		{`controller.podLabels={"team":"edge"}`, controller, "spec.template.metadata.labels.team", "edge"},
		{`daemon.extraEnv=[{"name":"A","value":"b"}]`, daemon, pod + "containers.0.env.1", "map[name:A value:b]"},
		{`daemon.extraEnv=[{"name":"A","value":"b"}]`, daemon, pod + "initContainers.0.env.1", "map[name:A value:b]"},
		{`controller.extraEnv=[{"name":"A","value":"b"}]`, controller, pod + "containers.0.env", "[map[name:A value:b]]"},
		{``, daemon, pod + "containers.0.resources.limits", "map[memory:1Gi]"},     // none of cpu: a throttled daemon writes late
		{``, controller, pod + "containers.0.resources.limits", "map[memory:1Gi]"}, // nor here
		{`daemon.resources={"limits":{"memory":"2Gi"}}`, daemon, pod + "containers.0.resources.limits.memory", "2Gi"},
		{`daemon.resources.limits=null`, daemon, pod + "containers.0.resources", "map[requests:map[cpu:20m memory:64Mi]]"},
		{`monitoring.kubeProxyNames=true daemon.extraArgs=["--v=2"]`, daemon, flags, `[run --node-name=$(NODE_NAME) --proxy-mode=iptables --iptables-variant=auto ` +
			`--healthz-bind-address=0.0.0.0:10256 --metrics-bind-address=127.0.0.1:10249 --kube-proxy-metrics --v=2 --state-dir=/var/lib/gridproxy]`},
		{`daemon.extraArgs=["--v=1"] monitoring.serviceMonitor=true`, daemon, flags, `[run --node-name=$(NODE_NAME) --proxy-mode=iptables --iptables-variant=auto ` +
			`--healthz-bind-address=0.0.0.0:10256 --metrics-bind-address=0.0.0.0:10249 --v=1 --state-dir=/var/lib/gridproxy]`},
		{`daemon.extraArgs=["--metrics-bind-address=0.0.0.0:20249"]`, daemon, flags + ".6", "--metrics-bind-address=0.0.0.0:20249"}, // the last one counts
		{`daemon.healthzPort=10249 daemon.metricsPort=10256`, daemon, pod + "containers.0.livenessProbe.httpGet.port", "10249"},
		{`monitoring.serviceMonitor=true daemon.shadow=true`, "Service/gridproxy-metrics", "spec.ports", "[map[name:metrics port:10349]]"},
		{`monitoring.serviceMonitor=true monitoring.labels={"release":"prometheus"}`, "ServiceMonitor/grid-controller", "metadata.labels.release", "prometheus"},
		{`monitoring.podMonitor.enabled=true`, daemon, pod + "containers.0.ports", "[map[containerPort:10249 name:metrics]]"},
		{`monitoring.podMonitor.enabled=true`, daemon, flags + ".5", "--metrics-bind-address=0.0.0.0:10249"},
		{`monitoring.podMonitor.enabled=true`, "Service/gridproxy-metrics", "spec", "<nil>"},
		{``, daemon, pod + "containers.0.ports", "<nil>"},
		{`monitoring.podMonitor.enabled=true`, "PodMonitor/gridproxy", "spec.podMetricsEndpoints", "[map[interval:30s port:metrics " +
			"relabelings:[map[sourceLabels:[__meta_kubernetes_pod_node_name] targetLabel:node] map[replacement:gridproxy-metrics targetLabel:job]]]]"},
		{`monitoring.podMonitor={"enabled":true,"interval":"1m"}`, "PodMonitor/grid-controller", "spec.podMetricsEndpoints.0.interval", "1m"},
		{`monitoring={"podMonitor":{"enabled":true,"labels":{"a":"b"}},"labels":{"a":"c","release":"x"}}`, "PodMonitor/gridproxy", "metadata.labels.a", "b"},
		{`monitoring.podMonitor.enabled=true controller.enabled=false`, "PodMonitor/grid-controller", "spec", "<nil>"},
		{`monitoring.dashboard=true`, "ConfigMap/gridproxy-dashboard", "metadata.labels.grafana_dashboard", "1"},
		{`monitoring={"dashboard":true,"labels":{"grafana_dashboard":"yes"}}`, "ConfigMap/gridproxy-dashboard", "metadata.labels.grafana_dashboard", "yes"},
		{`monitoring={"prometheusRule":true,"labels":{"app.kubernetes.io/part-of":"site"}}`, "PrometheusRule/gridproxy", `metadata.labels`,
			"map[app.kubernetes.io/instance:gridproxy app.kubernetes.io/managed-by:Helm app.kubernetes.io/name:gridproxy app.kubernetes.io/part-of:site " +
				"app.kubernetes.io/version:dev helm.sh/chart:gridproxy-0.1.0]"},
		{`image={"repository":"registry.example/gridproxy","tag":"v1"}`, controller, pod + "containers.0.image", "registry.example/gridproxy:v1"},
		{`image={"repository":"registry.example/gridproxy","tag":"v1"}`, daemon, pod + "initContainers.0.image", "registry.example/gridproxy:v1"},
		{`image={"repository":"registry.example/gridproxy","tag":"sha256:0123"}`, daemon, pod + "containers.0.image", "registry.example/gridproxy@sha256:0123"},
		{`imagePullSecrets=[{"name":"mine"}]`, controller, pod + "imagePullSecrets", "[map[name:mine]]"},
		{``, controller, "spec.replicas", "2"},
		{``, controller, pod + "tolerations", "[map[effect:NoSchedule key:node-role.kubernetes.io/control-plane operator:Exists] " +
			"map[effect:NoSchedule key:node-role.kubernetes.io/master operator:Exists]]"},
		{``, controller, pod + "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.0.podAffinityTerm.topologyKey", "kubernetes.io/hostname"},
		{`controller.affinity={"nodeAffinity":{}}`, controller, pod + "affinity", "map[nodeAffinity:map[]]"},
		{`controller.extraArgs=["--unit-removal-grace=1h"]`, controller, flags, "[run --unit-removal-grace=1h]"},
		{``, "PodDisruptionBudget/grid-controller", "spec.maxUnavailable", "1"},
		{``, "PodDisruptionBudget/grid-controller", "spec.unhealthyPodEvictionPolicy", "AlwaysAllow"},
		{``, daemon, pod + "affinity", leftOut("map[key:gridproxy.io/site-alone operator:DoesNotExist]")},
		{`daemon.leaveOutNodes="a/b"`, daemon, pod + "affinity", leftOut("map[key:a/b operator:DoesNotExist]")},
		{`daemon.leaveOutNodes=""`, daemon, pod + "affinity", "<nil>"},
		{`daemon.leaveOutNodes="" daemon.affinity={"podAffinity":{}}`, daemon, pod + "affinity", "map[podAffinity:map[]]"},
		{`daemon.affinity={"nodeAffinity":{},"podAffinity":{}}`, daemon, pod + "affinity.podAffinity", "map[]"},
		{`daemon.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` +
			`{"matchExpressions":[{"key":"c","operator":"Exists"}]},{"matchFields":[{"key":"metadata.name","operator":"In","values":["n1"]}]},{}]}}}`, daemon, pod + "affinity",
			"map[nodeAffinity:map[requiredDuringSchedulingIgnoredDuringExecution:map[nodeSelectorTerms:[" +
				"map[matchExpressions:[map[key:c operator:Exists] map[key:gridproxy.io/site-alone operator:DoesNotExist]]] " +
				"map[matchExpressions:[map[key:gridproxy.io/site-alone operator:DoesNotExist]] matchFields:[map[key:metadata.name operator:In values:[n1]]]] map[]]]]]"},
		{`controller.enabled=false`, controller, "spec", "<nil>"},
		{`controller.nodeUnits=false controller.extraArgs=["--v=1"]`, controller, flags, "[run --node-units=false --v=1]"},
		{`controller.nodeUnits=false`, "CustomResourceDefinition/nodegroups.site.superedge.io", "spec", "<nil>"},
		{`controller.replicas=2`, "ClusterRole/grid-controller-federation", "rules", "<nil>"},
		{`federation.mode="hub"`, controller, flags, "[run --federation=hub]"},
		{`federation.mode="hub" dns.clusterDomain="a.example"`, controller, flags, "[run --federation=hub --artifact-url=http://grid-artifacts.gridproxy.svc.a.example]"},
		{`federation.mode="member"`, controller, pod + "containers.0.ports.2", "map[containerPort:9790 name:artifacts]"},
		{`federation.mode="member"`, "Service/grid-artifacts", "spec.ports.0.targetPort", "9790"},
		{`federation.mode="hub" federation.fluxNamespace="gitops"`, "NetworkPolicy/grid-artifacts", "spec.ingress.1.from.0.namespaceSelector.matchLabels",
			"map[kubernetes.io/metadata.name:gitops]"},
		{`federation.mode="hub"`, "Role/grid-controller-federation", "rules", "<nil>"},
		{`controller.nodeUnits=false`, "CustomResourceDefinition/servicegrids.superedge.io", "spec.group", "superedge.io"},
		{`controller.enabled=false`, "ClusterRole/grid-controller", "rules", "<nil>"},
		{``, "CustomResourceDefinition/nodeunits.site.superedge.io", `metadata.annotations`, "map[controller-gen.kubebuilder.io/version:v0.23.0 helm.sh/resource-policy:keep]"},
		{`crds.install=false`, "CustomResourceDefinition/nodeunits.site.superedge.io", "spec", "<nil>"},
	})
}

// valueCase is what the field of an object is with some values.
type valueCase struct{ values, object, path, want string }

// wantFields checks what the fields of objects are with some values.
func wantFields(t *testing.T, cases []valueCase) {
	t.Helper()
	h := newHelm(t)
	for _, c := range cases {
		got := fmt.Sprint(at(t, objects(t, h, strings.Fields(c.values)...)[c.object], c.path))
		if got != c.want {
			t.Errorf("values %s: %s of %s\nis   %s\nwant %s", c.values, c.path, c.object, got, c.want)
		}
	}
}

// leftOut is the affinity that leaves out Nodes by one expression.
func leftOut(expression string) string {
	return "map[nodeAffinity:map[requiredDuringSchedulingIgnoredDuringExecution:map[nodeSelectorTerms:[map[matchExpressions:[" + expression + "]]]]]]"
}

// TestDefinitions: the chart has the definitions of deploy/crds, each with one annotation and the
// standard labels more.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(folder, "crds", "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	all := objects(t, newHelm(t))
	for _, file := range files {
		var want unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(read(t, file)), &want.Object))
		got := all["CustomResourceDefinition/"+want.GetName()]
		unstructured.RemoveNestedField(got.Object, "metadata", "annotations", "helm.sh/resource-policy")
		unstructured.RemoveNestedField(got.Object, "metadata", "labels")
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("%s (-file +chart)\n%s", file, diff)
		}
	}
}

// TestTemplateFields: the policy that warns of typing mistakes in templates knows the fields of the
// API's own types.
func TestTemplateFields(t *testing.T) {
	var known map[string][]string
	must(t, yaml.Unmarshal([]byte(read(t, folder+"/charts/gridproxy/files/template-fields.yaml")), &known))
	for resource, spec := range map[string]any{
		"deploymentgrids": appsv1.DeploymentSpec{}, "statefulsetgrids": appsv1.StatefulSetSpec{}, "servicegrids": corev1.ServiceSpec{},
	} {
		var want []string
		for f := range reflect.TypeOf(spec).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			want = append(want, name)
		}
		slices.Sort(want)
		if !slices.Equal(known[resource], want) {
			t.Errorf("%s: the file has %v, want %v", resource, known[resource], want)
		}
	}
}
