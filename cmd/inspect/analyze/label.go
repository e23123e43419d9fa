package analyze

import (
	"cmp"
	"maps"
	"slices"

	"gridproxy/cmd/table"
	"gridproxy/topology"
	"gridproxy/topology/similar"
)

// labels finds keys that Nodes do not carry, and Nodes that carry no key.
func (a *analysis) labels() {
	named := map[string]bool{}   // keys that a Service names
	confine := map[string]bool{} // those without which a Node is refused, if another Node has them
	for _, c := range a.closed {
		var missing []string
		for _, key := range c.keys {
			named[key] = true
			if !a.isCarried(key) {
				missing = append(missing, key)
			} else if !c.anywhere() {
				confine[key] = true
			}
		}
		a.missing(c, missing)
	}
	keys, confining := slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(confine))
	for _, node := range a.nodes {
		a.node(node, keys, confining)
	}
}

func (a *analysis) isCarried(key string) bool {
	_, found := slices.BinarySearch(a.carried, key)
	return found
}

// missing adds findings about keys of a Service that no Node carries.
func (a *analysis) missing(c closedService, keys []string) {
	if len(keys) > 0 && len(keys) == len(c.closure.Keys) {
		a.add(noKeyCarried, c.service, func() (string, string) {
			return "no Node has a value for " + table.List(keys) + ": " + a.outsideUnits(), a.insteadOf(keys)
		})
		return
	}
	for _, key := range keys {
		a.add(keyNotCarried, c.service, func() (string, string) {
			return "no Node has a value for " + key + ", one of its keys: this key adds no endpoint", a.insteadOf([]string{key})
		})
	}
}

// outsideUnits returns what a Node gets of a closed Service if it is in no unit.
func (a *analysis) outsideUnits() string {
	switch a.config.Topology.NodesWithoutUnit {
	case topology.WithoutUnitLocal:
		return "each Node uses its own endpoints only"
	case topology.WithoutUnitOpen:
		return "each Node uses all endpoints, as if the Service were open"
	default:
		return "clients on all Nodes are refused"
	}
}

// insteadOf returns a remedy for keys that no Node carries, such as similar keys of Nodes.
func (a *analysis) insteadOf(keys []string) string {
	const label = "label Nodes with it"
	var near []string
	for _, key := range keys {
		near = append(near, similar.Names(key, a.carried)...)
	}
	slices.Sort(near)
	if near = slices.Compact(near); len(near) > 0 {
		return "correct the key: Nodes have the similar " + table.List(near) + "; or " + label
	}
	return label + ", or name a key that Nodes have"
}

// node finds what is wrong with the labels of a Node. keys are those that Services name, confining
// those without which it is refused.
func (a *analysis) node(name string, keys, confining []string) {
	set := a.snapshot.Nodes[name]
	var empty []string
	for _, key := range keys {
		if value, found := set[key]; found && value == "" {
			empty = append(empty, key)
		}
	}
	if len(empty) > 0 {
		list := table.List(empty)
		a.addNode(emptyValue, name, text("its label "+list+" has an empty value, which is no unit", "give the label "+list+" a value, or remove it"))
	}
	refused := cmp.Or(a.config.Topology.NodesWithoutUnit, topology.WithoutUnitClosed) == topology.WithoutUnitClosed
	carriesOne := slices.ContainsFunc(confining, func(key string) bool { return set[key] != "" })
	if refused && len(confining) > 0 && !carriesOne {
		a.addNode(nodeWithoutKeys, name, text(
			"it carries none of the keys that close Services ("+table.List(confining)+"): these Services refuse its clients",
			"label the Node, or run its daemon with --nodes-without-unit local or open"))
	}
}
