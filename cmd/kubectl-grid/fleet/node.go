package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// Node is one Node of a Report.
type Node struct {
	Name   string            `json:"name"`
	Units  map[string]string `json:"units,omitempty"` // its values of Report.Keys
	Daemon Daemon            `json:"daemon"`
	Ready  string            `json:"ready"` // of the kubelet: True, False or Unknown
}

// Runs reports whether the daemon should run on a Node: the DaemonSet selects Linux and tolerates
// every taint.
func Runs(node *corev1.Node) bool {
	os := node.Labels[corev1.LabelOSStable]
	return os == "" || os == "linux"
}

func newNode(node *corev1.Node, keys []string, a Answer) Node {
	row := Node{Name: node.Name, Units: map[string]string{}, Daemon: Judge(node, a), Ready: string(corev1.ConditionUnknown)}
	for _, key := range keys {
		if value := node.Labels[key]; value != "" {
			row.Units[key] = value
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			row.Ready = string(c.Status)
		}
	}
	return row
}

// unit returns the text of a Node's units: the value of the only key, or all as key=value.
func (n Node) unit(keys []string) string {
	if len(keys) == 1 {
		return n.Units[keys[0]]
	}
	var all []string
	for _, key := range keys {
		if value := n.Units[key]; value != "" {
			all = append(all, key+"="+value)
		}
	}
	return strings.Join(all, ", ")
}

// sortNodes puts those first that need attention; then by unit, then by name.
func sortNodes(nodes []Node, keys []string) {
	rank := map[State]int{Unhealthy: 0, Unknown: 1, Healthy: 2}
	slices.SortFunc(nodes, func(a, b Node) int {
		return cmp.Or(rank[a.Daemon.State]-rank[b.Daemon.State], cmp.Compare(a.unit(keys), b.unit(keys)), cmp.Compare(a.Name, b.Name))
	})
}

// keysMax bounds the keys that are shown: whoever may create a Service can name some.
const keysMax = 4

// UnitKeys returns the label keys that closed Services or Grids name and that a Node carries:
// the first keysMax, those named most often first.
func UnitKeys(nodes []*corev1.Node, services []*corev1.Service, grids []Grid) []string {
	carried := map[string]bool{}
	for _, n := range nodes {
		for key, value := range n.Labels {
			carried[key] = carried[key] || value != ""
		}
	}
	count := map[string]int{}
	name := func(key string) {
		if carried[key] {
			count[key]++
		}
	}
	for _, g := range grids {
		name(g.Key)
	}
	for _, svc := range services {
		keys, _, err := topology.ParseKeys(svc.Annotations)
		if err != nil {
			continue // the daemon reports it
		}
		for _, key := range keys {
			name(key)
		}
	}
	sorted := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	return sorted[:min(len(sorted), keysMax)]
}
