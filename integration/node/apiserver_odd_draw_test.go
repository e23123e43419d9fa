package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// absent is the value of a field that is removed.
const absent = "\x00absent"

// oddKind says how objects of a kind are drawn: one of the forms, which an API server takes, with
// odd values in up to three fields.
type oddKind struct {
	share  int // of 100 objects
	forms  []string
	fields map[string][]any
}

// draw draws object number i. What only one object can have depends on i.
func (k *oddKind) draw(r *rand.Rand, i int) []byte {
	number := strings.NewReplacer("NUMBER", strconv.Itoa(i), "HIGH", strconv.Itoa(1+i/250), "LOW", strconv.Itoa(1+i%250), "NODEPORT", strconv.Itoa(30000+i))
	var object map[string]any
	if err := json.Unmarshal([]byte(number.Replace(k.forms[r.IntN(len(k.forms))])), &object); err != nil {
		panic(err) // a form is wrong
	}
	fields := slices.Sorted(maps.Keys(k.fields))
	for range 1 + r.IntN(3) {
		field := fields[r.IntN(len(fields))]
		value := k.fields[field][r.IntN(len(k.fields[field]))]
		if text, ok := value.(string); ok {
			value = number.Replace(text)
		}
		setField(object, segments(field), value)
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err) // a value is wrong
	}
	return text
}

// segments returns the keys of a path, in which ~ stands for a slash within a key.
func segments(path string) []string {
	all := strings.Split(path, "/")
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], "~", "/")
	}
	return all
}

// setField sets a field, or an element of a list, if the object has what is above it. The index
// after the last element appends one.
func setField(in any, path []string, value any) any {
	switch above := in.(type) {
	case map[string]any:
		if len(path) > 1 {
			above[path[0]] = setField(above[path[0]], path[1:], value)
		} else if above[path[0]] = value; value == absent {
			delete(above, path[0])
		}
		return above
	case []any:
		i, err := strconv.Atoi(path[0])
		switch {
		case err == nil && len(path) > 1 && i < len(above):
			above[i] = setField(above[i], path[1:], value)
		case err == nil && len(path) == 1 && i <= len(above) && value != absent:
			return append(slices.Clone(above[:i]), value)
		}
		return above
	default:
		return in
	}
}

// The odd values, by what a field holds.
var (
	oddAddresses = []any{
		"", "192.0.2.1", "2001:DB8::1", "::1", "fe80::1", "fe80::1%eth0", "::ffff:192.0.2.1", "010.0.0.1", "192.0.2.010", "192.0.2", "1", "n1.example.com", "127.0.0.1",
		"0.0.0.0", "0.0.0.1", "224.0.0.1", "169.254.1.1", "255.255.255.255", "ff02::1", "ff05::1", "::", " 192.0.2.1", "192.0.2.1/32", "None", "\n", 5, true, nil, absent,
	}
	oddPrefixes = []any{
		"", "10.0.0.0/8", "10.1.2.3/8", "010.0.0.0/8", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0", "fd00::/8", "FD00::1/64", "::ffff:10.0.0.0/104", "0.0.0.0/0", "::/0",
		" 10.0.0.0/8", "10.0.0.0/8 ", "10.0.0.0/-1", "x", 5, nil, absent,
	}
	oddNames = []any{
		"", "odd-NUMBER", "Odd-NUMBER", "odd.NUMBER", "odd_NUMBER", "-odd-NUMBER", "odd-NUMBER-", "NUMBER", "ödd-NUMBER", "odd NUMBER", "odd/NUMBER", "odd..NUMBER", ".",
		"NUMBER-" + strings.Repeat("a", 50), "NUMBER-" + strings.Repeat("a", 63), "NUMBER-" + strings.Repeat("a", 253), 5, nil, absent,
	}
	oddPorts  = []any{0, -1, 1, 80, 65535, 65536, 70000, 1 << 31, 1 << 62, "80", "http", "", 80.5, 80.0, true, nil, absent, []any{80}}
	oddValues = []any{"", "a", "A.b_c", "a b", "-a", "ä", strings.Repeat("a", 63), strings.Repeat("a", 64), 5, true, nil, absent}
)

// words returns the values of an enumeration, and what else may be there.
func words(known ...any) []any {
	return append(known, "", "other", strings.ToLower(fmt.Sprint(known[0])), 5, nil, absent)
}

// oddGrids is where StatefulSetGrids are.
const oddGrids = "/apis/superedge.io/v1/namespaces/default/statefulsetgrids"

// pathOf returns where objects of a kind are.
func pathOf(kind any) string {
	switch kind {
	case "Service":
		return "/api/v1/namespaces/default/services"
	case "EndpointSlice":
		return "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	case "StatefulSetGrid":
		return oddGrids
	default:
		return "/api/v1/" + strings.ToLower(fmt.Sprint(kind)) + "s"
	}
}

// oddKinds returns the kinds that manifests are read for.
func oddKinds() []*oddKind {
	return []*oddKind{oddServices(), oddSlices(), oddNodes(),
		{
			share:  4,
			forms:  []string{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"space-NUMBER"}}`},
			fields: map[string][]any{"metadata/name": oddNames, "metadata/namespace": {"", "default", "Other", nil, 5}},
		},
		{
			share: 4,
			forms: []string{`{"apiVersion":"superedge.io/v1","kind":"StatefulSetGrid","metadata":{"name":"grid-NUMBER"},"spec":{"gridUniqKey":"zone",
				"template":{"serviceName":"a","selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"a"}]}}}}}`},
			fields: map[string][]any{"metadata/name": oddNames, "metadata/namespace": {"", "default", nil, absent}},
		},
	}
}

func oddServices() *oddKind {
	const head = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"odd-NUMBER","namespace":"default"},"spec":{`
	return &oddKind{
		share: 48,
		forms: []string{
			head + `"clusterIP":"10.96.HIGH.LOW","ports":[{"port":80}]}}`,
			head + `"clusterIP":"10.96.HIGH.LOW","ports":[{"name":"a","port":80,"targetPort":"http"},{"name":"b","port":81,"protocol":"UDP"}],"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":5}}}}`,
			head + `"clusterIP":"None","ports":[{"port":80}]}}`,
			head + `"clusterIP":"None"}}`,
			head + `"type":"NodePort","clusterIP":"10.96.HIGH.LOW","ports":[{"port":80,"nodePort":NODEPORT}],"externalIPs":["192.0.2.1"]}}`,
			head + `"type":"LoadBalancer","clusterIP":"fd00:10:96::HIGHLOW","ports":[{"port":80,"nodePort":NODEPORT}],"loadBalancerSourceRanges":["10.0.0.0/8"],"externalTrafficPolicy":"Local"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.2","ipMode":"VIP"}]}}}`,
			head + `"type":"ExternalName","externalName":"example.com"}}`,
			head + `"clusterIPs":["10.96.HIGH.LOW","fd00:10:96::HIGHLOW"],"ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"RequireDualStack","clusterIP":"10.96.HIGH.LOW","ports":[{"port":80}]}}`,
		},
		fields: map[string][]any{
			"metadata/name":                 oddNames,
			"metadata/generateName":         {"odd-", "Odd", nil},
			"metadata/labels":               {map[string]any{"service.kubernetes.io/headless": ""}, map[string]any{"service.kubernetes.io/service-proxy-name": "x"}, map[string]any{"a b": ""}, nil, "a"},
			"metadata/annotations":          {map[string]any{"topologyKeys": "location"}, map[string]any{"topologyKeys": `["a b"]`}, map[string]any{"topologyKeys": 5}, nil},
			"spec/type":                     words("ClusterIP", "NodePort", "LoadBalancer"),
			"spec/clusterIP":                slices.Concat(oddAddresses, []any{"None", "none"}),
			"spec/clusterIPs":               {[]any{}, []any{"None"}, []any{"10.96.200.1", "10.96.200.2"}, []any{"10.96.200.3", "fd00:10:96::f003", "10.96.200.4"}, []any{""}, []any{"x"}, "x", nil, absent},
			"spec/ipFamilies":               {[]any{}, []any{"IPv4"}, []any{"IPv6"}, []any{"IPv4", "IPv4"}, []any{"IPv6", "IPv4"}, []any{"ipv4"}, []any{""}, nil},
			"spec/ports":                    {[]any{}, nil, absent, []any{nil}, "a"},
			"spec/ports/0/port":             oddPorts,
			"spec/ports/0/targetPort":       oddPorts,
			"spec/ports/0/nodePort":         {0, -1, 80, 65536, "30000", nil, absent},
			"spec/ports/0/protocol":         words("TCP", "UDP", "SCTP"),
			"spec/ports/0/name":             oddNames,
			"spec/ports/1":                  {map[string]any{"port": 81}, map[string]any{"name": "a", "port": 82}, map[string]any{"name": "c", "port": 80}, map[string]any{"name": "c", "port": 80, "protocol": "UDP"}, nil},
			"spec/externalIPs":              {[]any{}, []any{"192.0.2.7", "192.0.2.7"}, nil, "192.0.2.7"},
			"spec/externalIPs/0":            oddAddresses,
			"spec/loadBalancerSourceRanges": {[]any{}, nil, "10.0.0.0/8"}, "spec/loadBalancerSourceRanges/0": oddPrefixes,
			"spec/sessionAffinity":                               words("None", "ClientIP"),
			"spec/sessionAffinityConfig":                         {nil, absent, map[string]any{}, map[string]any{"clientIP": map[string]any{}}, map[string]any{"clientIP": nil}},
			"spec/sessionAffinityConfig/clientIP/timeoutSeconds": {0, -1, 1, 86400, 86401, "5", nil, absent},
			"spec/externalTrafficPolicy":                         words("Cluster", "Local"),
			"spec/internalTrafficPolicy":                         words("Cluster", "Local"),
			"spec/healthCheckNodePort":                           {0, -1, 80, 65536, "30000", nil},
			"spec/externalName":                                  {"", "example.com", "example.com.", "Example.com", "-", "a_b", "192.0.2.1", strings.Repeat("a", 64), 5, nil, absent},
			"spec/publishNotReadyAddresses":                      {true, false, nil, "true", 1},
			"spec/trafficDistribution":                           {"PreferClose", "PreferSameNode", "other", "", nil},
			"status/loadBalancer/ingress":                        {[]any{}, nil, []any{map[string]any{"hostname": "lb.example.com"}}, []any{map[string]any{"hostname": "not a name"}}, []any{map[string]any{"ipMode": "VIP"}}, []any{map[string]any{}}},
			"status/loadBalancer/ingress/0/ip":                   oddAddresses,
			"status/loadBalancer/ingress/0/ipMode":               words("VIP", "Proxy"),
		},
	}
}

func oddSlices() *oddKind {
	const head = `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"odd-NUMBER","namespace":"default","labels":{"kubernetes.io/service-name":"web"}},`
	return &oddKind{
		share: 28,
		forms: []string{
			head + `"addressType":"IPv4","ports":[{"name":"","port":80}],"endpoints":[{"addresses":["10.244.0.1"],"nodeName":"n1"},{"addresses":["10.244.0.2"],"conditions":{"ready":false}}]}`,
			head + `"addressType":"IPv6","ports":[{"name":"a","port":80},{"name":"b","port":81,"protocol":"UDP"}],"endpoints":[{"addresses":["fd00:10:244::1"],"hostname":"a","zone":"z"}]}`,
			head + `"addressType":"FQDN","endpoints":[{"addresses":["a.example.com"]}]}`,
		},
		fields: map[string][]any{
			"metadata/name": oddNames,
			"metadata/labels/kubernetes.io~service-name": append(oddNames, oddValues...),
			"addressType":             words("IPv4", "IPv6", "FQDN"),
			"ports":                   {[]any{}, nil, absent, "a", []any{nil}, []any{map[string]any{}}},
			"ports/0/name":            oddNames,
			"ports/0/port":            oddPorts,
			"ports/0/protocol":        words("TCP", "UDP", "SCTP"),
			"ports/0/appProtocol":     {"http", "kubernetes.io/h2c", "a b", "", nil, 5},
			"ports/1":                 {map[string]any{}, map[string]any{"name": "a"}, map[string]any{"name": "", "port": 8080}, map[string]any{"name": "c", "port": 80}, nil},
			"endpoints":               {[]any{}, nil, absent, "a", []any{nil}, []any{map[string]any{}}},
			"endpoints/0/addresses":   {[]any{}, nil, absent, "a", []any{"10.244.0.1", "10.244.0.9"}, []any{"10.244.0.1", "10.244.0.1"}, []any{"10.244.0.1", "x"}},
			"endpoints/0/addresses/0": oddAddresses,
			"endpoints/0/nodeName":    oddNames,
			"endpoints/0/hostname":    oddNames,
			"endpoints/0/zone":        oddValues,
			"endpoints/0/conditions":  {nil, absent, map[string]any{"ready": nil}, map[string]any{"ready": "true"}, map[string]any{"terminating": true, "serving": false}, map[string]any{"other": 5}},
			"endpoints/0/hints":       {nil, map[string]any{}, map[string]any{"forZones": []any{}}, map[string]any{"forZones": []any{map[string]any{"name": "a b"}}}, map[string]any{"forNodes": []any{map[string]any{"name": "n1"}}}, map[string]any{"forZones": []any{map[string]any{}}}},
			"endpoints/0/targetRef":   {map[string]any{"kind": "Pod", "name": "a"}, map[string]any{}, nil},
			"endpoints/1":             {map[string]any{"addresses": []any{"10.244.0.1"}}, map[string]any{"addresses": []any{"fd00::1"}}, nil},
		},
	}
}

func oddNodes() *oddKind {
	const head = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"odd-NUMBER","labels":{"location":"a"}},"spec":{`
	return &oddKind{
		share: 16,
		forms: []string{
			head + `"podCIDR":"10.1.0.0/24","podCIDRs":["10.1.0.0/24"]},"status":{"addresses":[{"type":"InternalIP","address":"192.168.0.1"},{"type":"Hostname","address":"n1"}]}}`,
			head + `"podCIDRs":["10.1.0.0/24","fd00:1::/64"]},"status":{"addresses":[{"type":"InternalIP","address":"192.168.0.1"},{"type":"ExternalIP","address":"fd00::1"}]}}`,
			head + `}}`,
		},
		fields: map[string][]any{
			"metadata/name":              oddNames,
			"metadata/labels/location":   oddValues,
			"metadata/labels":            {nil, map[string]any{"a b": "c"}, map[string]any{"a/b/c": "d"}, map[string]any{"": "d"}, map[string]any{"Example.com/A": "d"}, map[string]any{"example.com/" + strings.Repeat("a", 64): ""}, "a"},
			"spec/podCIDR":               oddPrefixes,
			"spec/podCIDRs":              {[]any{}, []any{"10.1.0.0/24", "10.2.0.0/24"}, []any{"10.1.0.0/24", "fd00:1::/64", "10.3.0.0/24"}, []any{"10.1.0.0/24", "10.1.0.0/24"}, []any{""}, nil, absent, "a"},
			"spec/podCIDRs/0":            oddPrefixes,
			"status/addresses/0/address": oddAddresses,
			"status/addresses/0/type":    words("InternalIP", "ExternalIP", "Hostname"),
			"status/addresses":           {[]any{}, nil, []any{map[string]any{}}, "a"},
			"status/addresses/1":         {map[string]any{"type": "InternalIP", "address": "192.168.0.1"}, map[string]any{"type": "InternalIP", "address": "192.168.0.2"}, nil},
		},
	}
}
