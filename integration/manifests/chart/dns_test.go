package chart

import (
	"strings"
	"testing"
)

// TestDNSValues: what the values for grid-dns come to.
func TestDNSValues(t *testing.T) {
	t.Parallel()
	const (
		on      = `dns.enabled=true `
		daemon  = "DaemonSet/gridproxy"
		server  = "DaemonSet/grid-dns"
		pod     = "spec.template.spec."
		first   = pod + "containers.0."
		check   = "[grid-dns check --address=169.254.20.12,fd00:6772:6964::12 --cluster-domain=cluster.local]"
		monitor = "PodMonitor/grid-dns"
	)
	wantFields(t, []valueCase{
		{``, server, "spec", "<nil>"},
		{on, daemon, first + "args", `[run --node-name=$(NODE_NAME) --proxy-mode=iptables --iptables-variant=auto ` +
			`--healthz-bind-address=0.0.0.0:10256 --metrics-bind-address=127.0.0.1:10249 --state-dir=/var/lib/gridproxy --local-dns ` +
			`--dns-address=169.254.20.12,fd00:6772:6964::12 --dns-service=kube-system/kube-dns --cluster-domain=cluster.local --dns-when-away=cluster]`},
		{on, daemon, pod + "initContainers.0.args", `[run --init-only --node-name=$(NODE_NAME) --proxy-mode=iptables --iptables-variant=auto ` +
			`--healthz-bind-address=0.0.0.0:10256 --metrics-bind-address=127.0.0.1:10249]`}, // which has nothing to do with DNS
		{`dns={"enabled":true,"addresses":["10.9.9.9"],"service":"dns/coredns","clusterDomain":"example.org","whenAway":"refuse"}`, daemon, first + "args.8", "--dns-address=10.9.9.9"},
		{`dns={"enabled":true,"addresses":["10.9.9.9"],"service":"dns/coredns","clusterDomain":"example.org","whenAway":"refuse"}`, daemon, first + "args.9", "--dns-service=dns/coredns"},
		{`dns={"enabled":true,"addresses":["10.9.9.9"],"service":"dns/coredns","clusterDomain":"example.org","whenAway":"refuse"}`, daemon, first + "args.11", "--dns-when-away=refuse"},
		{on, daemon, first + "lifecycle", "map[preStop:map[sleep:map[seconds:3]]]"}, // it hears that grid-dns leaves
		{``, daemon, first + "lifecycle", "<nil>"},
		{on, server, first + "command", "[grid-dns]"},
		{on, server, first + "args", "[serve --address=169.254.20.12,fd00:6772:6964::12 --names-file=/run/grid-dns/names --metrics-bind-address=127.0.0.1:9253]"},
		{on + `dns.addresses=["10.9.9.9"] dns.metricsPort=0`, server, first + "args", "[serve --address=10.9.9.9 --names-file=/run/grid-dns/names --metrics-bind-address=]"},
		{on, server, first + "startupProbe.exec.command", check},
		{on, server, first + "livenessProbe.exec.command", check},
		{on, server, first + "readinessProbe.exec.command", check},
		{`dns={"enabled":true,"addresses":["10.9.9.9"],"clusterDomain":"example.org"}`, server, first + "livenessProbe.exec.command", "[grid-dns check --address=10.9.9.9 --cluster-domain=example.org]"},
		{on, server, first + "securityContext", "map[allowPrivilegeEscalation:false capabilities:map[add:[NET_BIND_SERVICE] drop:[ALL]] readOnlyRootFilesystem:true runAsUser:0]"},
		{on, server, first + "resources", "map[limits:map[memory:256Mi] requests:map[cpu:20m memory:64Mi]]"},
		{on, server, first + "volumeMounts", "[map[mountPath:/run/gridproxy name:daemon readOnly:true] map[mountPath:/run/grid-dns name:names]]"},
		{on, server, pod + "volumes", "[map[hostPath:map[path:/run/gridproxy type:DirectoryOrCreate] name:daemon] map[hostPath:map[path:/run/grid-dns type:DirectoryOrCreate] name:names]]"},
		{on, server, pod + "automountServiceAccountToken", "false"},
		{on, server, pod + "serviceAccountName", "<nil>"},
		{on, server, pod + "hostNetwork", "true"},
		{on, server, pod + "dnsPolicy", "Default"},
		{on, server, pod + "priorityClassName", "system-node-critical"},
		{on, server, pod + "tolerations", "[map[operator:Exists]]"},
		{on, server, "spec.updateStrategy", "map[rollingUpdate:map[maxSurge:1 maxUnavailable:0] type:RollingUpdate]"},
		{on, server, "spec.minReadySeconds", "<nil>"},
		{on, server, first + "readinessProbe.initialDelaySeconds", "5"},
		{on, server, "spec.template.metadata.labels", "map[app.kubernetes.io/instance:gridproxy app.kubernetes.io/managed-by:Helm " +
			"app.kubernetes.io/name:grid-dns app.kubernetes.io/part-of:gridproxy app.kubernetes.io/version:dev]"},
		{on + `dns.nodeSelector={"trial":"yes"} daemon.nodeSelector={"edge":"yes"}`, server, pod + "nodeSelector", "map[edge:yes kubernetes.io/os:linux trial:yes]"},
		{on + `dns.nodeSelector={"trial":"yes"} daemon.nodeSelector={"edge":"yes"}`, daemon, pod + "nodeSelector", "map[edge:yes kubernetes.io/os:linux]"},
		{on, server, pod + "affinity", leftOut("map[key:gridproxy.io/site-alone operator:DoesNotExist]")}, // as the daemon
		{on + `monitoring.serviceMonitor=true`, server, first + "args.3", "--metrics-bind-address=0.0.0.0:9253"},
		{on + `monitoring.serviceMonitor=true dns.metricsPort=9353`, "Service/grid-dns-metrics", "spec.ports", "[map[name:metrics port:9353]]"},
		{on + `monitoring.serviceMonitor=true dns.metricsPort=0`, "Service/grid-dns-metrics", "spec", "<nil>"},
		{`monitoring.serviceMonitor=true`, "Service/grid-dns-metrics", "spec", "<nil>"},
		{on + `monitoring.podMonitor.enabled=true`, monitor, "spec.podMetricsEndpoints", "[map[interval:30s relabelings:[" +
			"map[sourceLabels:[__meta_kubernetes_pod_node_name] targetLabel:node] map[replacement:grid-dns-metrics targetLabel:job] " +
			"map[regex:(.+:.+) replacement:[$1]:9253 sourceLabels:[__meta_kubernetes_pod_ip] targetLabel:__address__] " +
			"map[regex:([0-9.]+) replacement:$1:9253 sourceLabels:[__meta_kubernetes_pod_ip] targetLabel:__address__]]]]"},
		{on + `monitoring.podMonitor.enabled=true`, monitor, "spec.selector.matchLabels", "map[app.kubernetes.io/name:grid-dns]"},
		{`monitoring.podMonitor.enabled=true`, monitor, "spec", "<nil>"},
	})
}

// TestDNSListsNoPort: a port of a Pod in the Node's network is the Node's, and the second server of
// an upgrade would not be scheduled.
func TestDNSListsNoPort(t *testing.T) {
	t.Parallel()
	for _, values := range []string{`dns.enabled=true`, `dns.enabled=true monitoring.podMonitor.enabled=true`, `dns.enabled=true monitoring.serviceMonitor=true`} {
		if ports := at(t, objects(t, newHelm(t), strings.Fields(values)...)["DaemonSet/grid-dns"], "spec.template.spec.containers.0.ports"); ports != nil {
			t.Errorf("values %s: the Pods list the ports %v", values, ports)
		}
	}
}

// TestDNSRights: the daemon may read what only names need with grid-dns alone.
func TestDNSRights(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]int{``: 3, `dns.enabled=true`: 5} {
		rules, _ := at(t, objects(t, newHelm(t), strings.Fields(values)...)["ClusterRole/gridproxy"], "rules").([]any)
		if len(rules) != want {
			t.Errorf("values %q: the role has %d rules, want %d: %v", values, len(rules), want, rules)
		}
	}
}
