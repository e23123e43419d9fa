package event

import (
	"slices"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"
)

// sender is which node sends an Event that several nodes see alike.
type sender int

const (
	thisNode sender = iota
	anotherNode
	notYetKnown // no node sends it before that is known
)

// text is the text about a Service, before and after.
type text struct{ before, after string }

// reported decides whether a text is reported, which said returns: once when it is new, only
// logged (logOnly) unless this node sends it, and a second time if only then this node is known
// to send it. waiting and waits: the sender was, or is, not known yet. Before the first View,
// begun is false: another node has sent it.
func (x text) reported(waiting, begun bool, ask func() sender) (said, logOnly, waits bool) {
	fresh := x.after != x.before
	if x.after == "" || !fresh && !waiting {
		return false, false, false
	}
	who := anotherNode
	if begun {
		who = ask()
	}
	return fresh || who == thisNode, who != thisNode, who == notYetKnown
}

// senderOf returns which node sends an Event that all nodes of its unit could send: the first
// one by name. A node without a unit of these keys sends none. If no keys were ever read, all
// Nodes are one unit. If the Snapshot lacks Nodes of that, it is the first node, by name, that
// has an endpoint of the Service. It returns notYetKnown if none has, or a unit is not watched.
func senderOf(s topology.Snapshot, node string, port *topology.ServicePort, keys []string) sender {
	self := s.Nodes[node]
	unit := explain.Unit(keys, self)
	switch {
	case unit == "" && len(keys) > 0:
		return anotherNode
	case s.Watched != nil && len(keys) == 0:
		return firstWithEndpoint(port, node)
	case s.Watched != nil && slices.ContainsFunc(keys, func(key string) bool { return self[key] != "" && !s.Watched[key] }):
		return notYetKnown
	}
	for name, other := range s.Nodes {
		if name < node && explain.Unit(keys, other) == unit {
			return anotherNode
		}
	}
	return thisNode
}

func firstWithEndpoint(port *topology.ServicePort, node string) sender {
	first := ""
	for _, slice := range port.Slices {
		if name := slice.FirstNode(); name != "" && (first == "" || name < first) {
			first = name
		}
	}
	switch first {
	case "":
		return notYetKnown
	case node:
		return thisNode
	default:
		return anotherNode
	}
}
