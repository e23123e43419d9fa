{{- /* What no pattern can say about ranges of addresses. Each check returns what is wrong, or nothing. */ -}}

{{- /* Of a dict with text, such as 10.244.0.0/16. */ -}}
{{- define "gridproxy.cidrFault" -}}
{{- $address := splitList "/" .text | first }}
{{- $bits := splitList "/" .text | last | atoi }}
{{- $four := regexMatch "^[0-9]+([.][0-9]+){3}$" $address }}
{{- $fault := include (ternary "gridproxy.ipv4Fault" "gridproxy.ipv6Fault" $four) (dict "address" $address) }}
{{- if $fault }}
{{- $fault }}
{{- else if gt $bits (ternary 32 128 $four) }}
{{- printf "its prefix is longer than %d bits" (ternary 32 128 $four) }}
{{- else if include "gridproxy.hostBits" (dict "address" $address "bits" $bits "four" $four) }}
{{- printf "bits after the prefix are set, so it is no range but an address in one: set them to 0" }}
{{- end }}
{{- end }}

{{- define "gridproxy.ipv4Fault" -}}
{{- $octets := splitList "." .address }}
{{- if ne (len $octets) 4 }}an IPv4 address has four numbers{{ end }}
{{- range $octets }}
{{- if or (gt (atoi .) 255) (gt (len .) 3) }}{{ printf "%s is more than 255" . }}{{ break }}{{ end }}
{{- if and (hasPrefix "0" .) (ne . "0") }}{{ printf "%s begins with 0" . }}{{ break }}{{ end }}
{{- end }}
{{- end }}

{{- define "gridproxy.ipv6Fault" -}}
{{- $short := contains "::" .address }}
{{- $groups := without (splitList ":" .address) "" }}
{{- $long := "" }}
{{- range $groups }}{{ if gt (len .) 4 }}{{ $long = . }}{{ end }}{{ end }}
{{- if not (contains ":" .address) }}it is neither an IPv4 nor an IPv6 address
{{- else if contains "." .address }}an IPv4 address inside of an IPv6 one is not supported
{{- else if or (gt (len (splitList "::" .address)) 2) (contains ":::" .address) }}:: is there twice
{{- else if regexMatch "^:[^:]|[^:]:$" .address }}it begins or ends with a colon
{{- else if $long }}{{ printf "%s has more than four digits" $long }}
{{- else if ternary (gt (len $groups) 7) (ne (len $groups) 8) $short }}{{ printf "an IPv6 address has eight groups, and this one has %d" (len $groups) }}
{{- end }}
{{- end }}

{{- /* Not empty if an address has bits after the prefix. It is gone through part by part: numbers of 8 bits, or groups of 16. */ -}}
{{- define "gridproxy.hostBits" -}}
{{- $width := ternary 8 16 .four }}
{{- $parts := splitList "." .address }}
{{- if not .four }}
{{- $halves := splitList "::" .address }}
{{- $head := without (splitList ":" (first $halves)) "" }}
{{- $tail := ternary (list) (without (splitList ":" (last $halves)) "") (eq (len $halves) 1) }}
{{- $parts = $head }}
{{- range until (int (sub 8 (add (len $head) (len $tail)))) }}{{ $parts = append $parts "0" }}{{ end }}
{{- $parts = concat $parts $tail }}
{{- end }}
{{- $left := .bits }}
{{- $four := .four }}
{{- range $parts }}
{{- $value := ternary (int64 .) (int64 (printf "0x%s" .)) $four }}
{{- $host := sub $width (min $width (max 0 $left)) }}
{{- $size := 1 }}
{{- range until (int $host) }}{{ $size = mul 2 $size }}{{ end }}
{{- if ne (mod $value $size) 0 }}yes{{ end }}
{{- $left = sub $left $width }}
{{- end }}
{{- end }}
