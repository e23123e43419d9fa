{{- /* Everything that two templates say. */ -}}

{{- /* By these a DaemonSet, a Deployment or a Service finds its Pods. Selectors cannot be changed: no other label belongs here. */ -}}
{{- define "gridproxy.selector" -}}
app.kubernetes.io/name: {{ .name }}
{{- end }}

{{- /* Of Pods. helm.sh/chart is not among them: a new chart alone need not replace a Pod. */ -}}
{{- define "gridproxy.podLabels" -}}
{{- include "gridproxy.selector" . }}
app.kubernetes.io/part-of: gridproxy
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ include "gridproxy.version" .root | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- /* Of every object, with a dict of root and name, and own: labels that come first. */ -}}
{{- define "gridproxy.labels" -}}
{{- $standard := include "gridproxy.podLabels" . | fromYaml }}
{{- $_ := set $standard "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") }}
{{- merge (dict) (.own | default dict) $standard | toYaml }}
{{- end }}

{{- /* The tag, if it can be the value of a label. */ -}}
{{- define "gridproxy.version" -}}
{{- ternary .Values.image.tag .Chart.AppVersion (regexMatch "^[0-9A-Za-z]([-0-9A-Za-z._]{0,61}[0-9A-Za-z])?$" .Values.image.tag) }}
{{- end }}

{{- define "gridproxy.image" -}}
{{- if .Values.image.digest }}
{{- .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}
{{- .Values.image.repository }}{{ ternary "@" ":" (hasPrefix "sha256:" .Values.image.tag) }}{{ .Values.image.tag }}
{{- end }}
{{- end }}

{{- /* Not empty where kube-proxy runs too: it has the usual ports, and the settings of the Node are its own. */ -}}
{{- define "gridproxy.beside" -}}
{{- if or .Values.daemon.shadow .Values.daemon.serviceProxyName }}yes{{ end }}
{{- end }}

{{- define "gridproxy.healthzPort" -}}
{{ .Values.daemon.healthzPort | default (ternary 10356 10256 (ne (include "gridproxy.beside" .) "")) }}
{{- end }}

{{- define "gridproxy.metricsPort" -}}
{{ .Values.daemon.metricsPort | default (ternary 10349 10249 (ne (include "gridproxy.beside" .) "")) }}
{{- end }}

{{- /* Not empty where Prometheus reaches the metrics from outside the Node. */ -}}
{{- define "gridproxy.scraped" -}}
{{- if .Values.monitoring.serviceMonitor }}ServiceMonitor{{ else if .Values.monitoring.podMonitor.enabled }}PodMonitor{{ end }}
{{- end }}

{{- /* The flags of the daemon, which its init container has too. */ -}}
{{- define "gridproxy.flags" -}}
- --node-name=$(NODE_NAME)
{{- with .Values.apiServers }}
- --api-servers={{ join "," . }}
{{- end }}
{{- with .Values.clusterCIDR }}
- --cluster-cidr={{ . }}
{{- end }}
- --proxy-mode={{ .Values.proxyMode }}
- --iptables-variant={{ .Values.iptablesVariant }}
{{- with .Values.daemon.serviceProxyName }}
- --service-proxy-name={{ . }}
{{- end }}
- --healthz-bind-address=0.0.0.0:{{ include "gridproxy.healthzPort" . }}
- --metrics-bind-address={{ ternary "0.0.0.0" "127.0.0.1" (ne (include "gridproxy.scraped" .) "") }}:{{ include "gridproxy.metricsPort" . }}
{{- if .Values.monitoring.kubeProxyNames }}
- --kube-proxy-metrics
{{- end }}
{{- with .Values.daemon.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The folder of saved state; a shadow saves none. */ -}}
{{- define "gridproxy.stateDir" -}}
{{- if not .Values.daemon.shadow }}{{ .Values.daemon.stateDir }}{{ end }}
{{- end }}

{{- /* daemon.affinity, in each of whose terms the Nodes that run the daemon otherwise are left out. A term without anything
selects no Node, and stays so. */ -}}
{{- define "gridproxy.affinity" -}}
{{- $affinity := deepCopy .Values.daemon.affinity }}
{{- with .Values.daemon.leaveOutNodes }}
{{- $leaveOut := dict "key" . "operator" "DoesNotExist" }}
{{- $nodeAffinity := get $affinity "nodeAffinity" | default dict }}
{{- $required := get $nodeAffinity "requiredDuringSchedulingIgnoredDuringExecution" | default dict }}
{{- $terms := list }}
{{- range get $required "nodeSelectorTerms" | default (list (dict "matchExpressions" list)) }}
{{- if . }}{{ $_ := set . "matchExpressions" (append (get . "matchExpressions" | default list) $leaveOut) }}{{ end }}
{{- $terms = append $terms . }}
{{- end }}
{{- $_ := set $required "nodeSelectorTerms" $terms }}
{{- $_ := set $nodeAffinity "requiredDuringSchedulingIgnoredDuringExecution" $required }}
{{- $_ := set $affinity "nodeAffinity" $nodeAffinity }}
{{- end }}
{{- with $affinity }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* What needs a privileged container of its own; not where the settings of the Node are another proxy's. */ -}}
{{- define "gridproxy.init" -}}
{{- if and .Values.daemon.privilegedInit (not (include "gridproxy.beside" .)) }}yes{{ end }}
{{- end }}

{{- /* Where the init container needs the Node's modules: ip_vs, ip_tables and ip6_tables come by modprobe alone. With variant
auto they do not matter: it is legacy only where somebody has loaded these. */ -}}
{{- define "gridproxy.modules" -}}
{{- if and (include "gridproxy.init" .) (or (eq .Values.proxyMode "ipvs") (eq .Values.iptablesVariant "legacy")) }}yes{{ end }}
{{- end }}

{{- /* What no schema can say. */ -}}
{{- define "gridproxy.check" -}}
{{- range $range := .Values.clusterCIDR | splitList "," | compact }}
{{- with include "gridproxy.cidrFault" (dict "text" $range) }}
{{- fail (printf "clusterCIDR has %s, which is no range of addresses: %s" $range .) }}
{{- end }}
{{- end }}
{{- range $server := .Values.apiServers }}
{{- $host := regexReplaceAll ":[0-9]+$" $server "" | trimPrefix "[" | trimSuffix "]" }}
{{- $fault := "" }}
{{- if hasPrefix "[" $server }}{{ $fault = include "gridproxy.ipv6Fault" (dict "address" $host) }}
{{- else if regexMatch "^[0-9.]+$" $host }}{{ $fault = include "gridproxy.ipv4Fault" (dict "address" $host) }}
{{- end }}
{{- with $fault }}
{{- fail (printf "apiServers has %s, whose host is no address: %s" $server .) }}
{{- end }}
{{- end }}
{{- if and .Values.monitoring.serviceMonitor .Values.monitoring.podMonitor.enabled }}
{{- fail "monitoring.serviceMonitor and monitoring.podMonitor.enabled are both true, so every Pod would be scraped twice: set one to false" }}
{{- end }}
{{- if and .Values.daemon.serviceProxyName (eq .Values.proxyMode "ipvs") }}
{{- fail "daemon.serviceProxyName does not go with proxyMode ipvs, whose names in the kernel cannot stand twice: set proxyMode to iptables for the trial" }}
{{- end }}
{{- $healthz := include "gridproxy.healthzPort" . | trim }}
{{- if eq $healthz (include "gridproxy.metricsPort" . | trim) }}
{{- fail (printf "daemon.healthzPort and daemon.metricsPort are both %s" $healthz) }}
{{- end }}
{{- $probes := list "the probes do" "healthzPort" }}
{{- $asked := dict "--healthz-bind-address" $probes "--healthz-port" $probes }}
{{- with include "gridproxy.scraped" . }}
{{- $scrapes := list (printf "the %s does" .) "metricsPort" }}
{{- $_ := set $asked "--metrics-bind-address" $scrapes }}
{{- $_ := set $asked "--metrics-port" $scrapes }}
{{- end }}
{{- range $flag, $who := $asked }}
{{- range $.Values.daemon.extraArgs }}
{{- if hasPrefix $flag (replace "_" "-" .) }}{{ fail (printf "daemon.extraArgs has %s, and %s not follow: set daemon.%s instead" . (first $who) (last $who)) }}{{ end }}
{{- end }}
{{- range $.Values.controller.extraArgs }}
{{- if hasPrefix $flag (replace "_" "-" .) }}{{ fail (printf "controller.extraArgs has %s, and %s not follow: leave it out, its Pod has a network of its own" . (first $who)) }}{{ end }}
{{- end }}
{{- end }}
{{- /* Flags that the chart writes itself, and the values that they are written from. */ -}}
{{- $written := dict "--local-dns" "dns.enabled" "--dns-address" "dns.addresses" "--dns-service" "dns.service" "--cluster-domain" "dns.clusterDomain" "--dns-when-away" "dns.whenAway" "--api-servers" "apiServers" "--cluster-cidr" "clusterCIDR" "--proxy-mode" "proxyMode" "--iptables-variant" "iptablesVariant" "--shadow" "daemon.shadow" "--state-dir" "daemon.stateDir" "--service-proxy-name" "daemon.serviceProxyName" "--kube-proxy-metrics" "monitoring.kubeProxyNames" }}
{{- range .Values.daemon.extraArgs }}
{{- with get $written (. | replace "_" "-" | splitList "=" | first) }}
{{- fail (printf "daemon.extraArgs has a flag that the value %s is for: set that value, which other parts of the chart follow" .) }}
{{- end }}
{{- end }}
{{- include "gridproxy.checkDNS" . }}
{{- range $of, $program := dict "daemon" .Values.daemon "controller" .Values.controller }}
{{- range $name, $_ := $program.podLabels }}
{{- if has $name (list "app.kubernetes.io/name" "app.kubernetes.io/part-of") }}
{{- fail (printf "%s.podLabels has %s, by which the Pods are found: leave it out" $of $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- $controls := dict "--node-units" "controller.nodeUnits" "--namespaces" "controller.namespaces" "--federation" "federation.mode" "--artifact-bind-address" "federation.mode" "--artifact-url" "dns.clusterDomain" }}
{{- range .Values.controller.extraArgs }}
{{- with get $controls (. | replace "_" "-" | splitList "=" | first) }}
{{- fail (printf "controller.extraArgs has a flag that the value %s is for: set that value, which rights and definitions follow" .) }}
{{- end }}
{{- end }}
{{- if and (ne .Values.federation.mode "off") (not .Values.controller.enabled) }}
{{- fail (printf "federation.mode is %s, which needs controller.enabled: true" .Values.federation.mode) }}
{{- end }}
{{- range .Values.daemon.extraArgs }}
{{- if and (has (. | replace "_" "-" | splitList "=" | first) (list "--cleanup" "--init-only" "--version" "--write-config-to")) (not (hasSuffix "=false" .)) }}
{{- fail (printf "daemon.extraArgs has %s, with which the daemon would exit, and be started again without end: remove it" .) }}
{{- end }}
{{- end }}
{{- end }}
