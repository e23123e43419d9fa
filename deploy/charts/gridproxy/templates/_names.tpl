{{- /* Everything that two templates say. */ -}}

{{- define "gridproxy.labels" -}}
app.kubernetes.io/name: {{ . }}
app.kubernetes.io/part-of: gridproxy
{{- end }}

{{- define "gridproxy.image" -}}
{{ printf "%s:%s" .Values.image.repository .Values.image.tag }}
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
- --metrics-bind-address={{ ternary "0.0.0.0" "127.0.0.1" .Values.monitoring.serviceMonitor }}:{{ include "gridproxy.metricsPort" . }}
{{- with .Values.daemon.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What no schema can say. */ -}}
{{- define "gridproxy.check" -}}
{{- if and .Values.daemon.serviceProxyName (eq .Values.proxyMode "ipvs") }}
{{- fail "daemon.serviceProxyName does not go with proxyMode ipvs, whose names in the kernel cannot stand twice: set proxyMode to iptables for the trial" }}
{{- end }}
{{- end }}
