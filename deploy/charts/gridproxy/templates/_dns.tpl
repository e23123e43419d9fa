{{- /* What no schema can say of the values for grid-dns. */ -}}
{{- define "gridproxy.checkDNS" -}}
{{- $families := dict }}
{{- range $address := .Values.dns.addresses }}
{{- $family := ternary "ipv6" "ipv4" (contains ":" $address) }}
{{- with include (printf "gridproxy.%sFault" $family) (dict "address" $address) }}
{{- fail (printf "dns.addresses has %s, which is no address: %s" $address .) }}
{{- end }}
{{- with get $families $family }}
{{- fail (printf "dns.addresses has %s and %s: leave one of them out, since grid-dns answers at one address of each family" . $address) }}
{{- end }}
{{- $_ := set $families $family $address }}
{{- end }}
{{- range .Values.daemon.extraArgs }}
{{- if eq (. | replace "_" "-" | splitList "=" | first) "--names-socket" }}
{{- fail (printf "daemon.extraArgs has %s, and grid-dns does not follow: leave it out" .) }}
{{- end }}
{{- end }}
{{- if .Values.dns.enabled }}
{{- with include "gridproxy.beside" . }}
{{- fail "dns.enabled does not go with daemon.shadow and daemon.serviceProxyName: the Service of the cluster's DNS is the other proxy's. Set it to false for the trial" }}
{{- end }}
{{- if and .Values.dns.nodeSelector (eq .Values.dns.whenAway "refuse") }}
{{- fail "dns.nodeSelector does not go with dns.whenAway refuse: the Nodes without grid-dns would have no DNS. Set dns.whenAway to cluster for the trial" }}
{{- end }}
{{- range $name, $value := .Values.dns.nodeSelector }}
{{- $of := get $.Values.daemon.nodeSelector $name | default $value }}
{{- if ne $of $value }}
{{- fail (printf "dns.nodeSelector has %s=%s, and daemon.nodeSelector %s=%s: no Node has both, and grid-dns needs the daemon" $name $value $name $of) }}
{{- end }}
{{- end }}
{{- if has (toString .Values.dns.metricsPort) (list (include "gridproxy.healthzPort" . | trim) (include "gridproxy.metricsPort" . | trim)) }}
{{- fail (printf "dns.metricsPort is %v, which the daemon has too, on the same network" .Values.dns.metricsPort) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Where the metrics of grid-dns are; "" = nowhere. */ -}}
{{- define "gridproxy.dnsMetrics" -}}
{{- with .Values.dns.metricsPort }}{{ ternary "0.0.0.0" "127.0.0.1" (ne (include "gridproxy.scraped" $) "") }}:{{ . }}{{ end }}
{{- end }}

{{- /* Not empty where Prometheus asks grid-dns. */ -}}
{{- define "gridproxy.dnsScraped" -}}
{{- if and .Values.dns.enabled .Values.dns.metricsPort }}{{ include "gridproxy.scraped" . }}{{ end }}
{{- end }}

{{- /* What an administrator has to know about grid-dns. At most 20 policies are named. */ -}}
{{- define "gridproxy.dnsNotes" -}}
{{- $blocks := list }}
{{- range .Values.dns.addresses }}{{ $blocks = append $blocks (printf "%s/%d" . (ternary 128 32 (contains ":" .))) }}{{ end }}
{{- $policies := list }}
{{- range (lookup "networking.k8s.io/v1" "NetworkPolicy" "" "").items }}
{{- if include "gridproxy.dropsDNS" (dict "spec" .spec "blocks" $blocks) }}{{ $policies = append $policies (printf "%s/%s" .metadata.namespace .metadata.name) }}{{ end }}
{{- end }}
{{- if $policies }}

WARNING: these NetworkPolicies have rules for egress, and may drop DNS queries that lead to grid-dns. Allow port 53 of the ipBlock {{ join " and " $blocks }}
in each (docs/dns.md has the rule), or leave their Nodes out with dns.nodeSelector:
{{ range $i, $policy := $policies }}
{{- if lt $i 20 }}
  {{ $policy }}
{{- end }}
{{- end }}
{{- with sub (len $policies) 20 | max 0 }}
  and {{ . }} more
{{- end }}
{{- end }}

Where network policies limit egress, they must allow port 53 of {{ join " and " $blocks }}, or DNS queries are dropped: docs/dns.md has
the rule. Policies of kinds other than NetworkPolicy, such as Calico's and Cilium's, are not looked at. Those that limit egress:

  kubectl get networkpolicies --all-namespaces --output 'custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,EGRESS:.spec.egress'
{{- if eq .Values.dns.whenAway "refuse" }}

WARNING: dns.whenAway is refuse: while grid-dns does not answer, Pods of its Node have no DNS. Set it to cluster before you uninstall
the chart or set dns.enabled to false.
{{- end }}
{{- end }}

{{- /* Of a dict with spec and blocks: not empty if a NetworkPolicy limits egress and no rule of it allows port 53 of each block. A
rule without ports, or without peers, allows all of them; of blocks only the same one is recognised, and 0.0.0.0/0 and ::/0. A port with
a name is one of a Pod, and does not count. */ -}}
{{- define "gridproxy.dropsDNS" -}}
{{- if has "Egress" (.spec.policyTypes | default list) }}
{{- range $block := .blocks }}
{{- $allowed := "" }}
{{- range $.spec.egress }}
{{- $port := not .ports }}
{{- range .ports }}
{{- $last := .endPort | default .port | default 53 | toString }}
{{- if and (eq (.protocol | default "TCP") "UDP") (le (.port | default 53 | toString | atoi) 53) (ge (atoi $last) 53) }}{{ $port = true }}{{ end }}
{{- end }}
{{- $peer := not .to }}
{{- range .to }}
{{- with .ipBlock }}
{{- if and (has .cidr (list $block (ternary "::/0" "0.0.0.0/0" (contains ":" $block)))) (not .except) }}{{ $peer = true }}{{ end }}
{{- end }}
{{- end }}
{{- if and $port $peer }}{{ $allowed = "yes" }}{{ end }}
{{- end }}
{{- if not $allowed }}yes{{ end }}
{{- end }}
{{- end }}
{{- end }}
