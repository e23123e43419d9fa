package matrix

import (
	"cmp"
	"slices"
	"strconv"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/cmd/table"
	"gridproxy/topology"
)

// Cell is from where the clients on the Nodes of a unit are answered.
type Cell struct {
	Answer explain.Answer `json:"answer"`
	// From are the values of the unit's key on the Nodes of the endpoints that answer, sorted;
	// those of any port and any Node of the unit where these differ. An endpoint may be in no unit,
	// or on a Node that is not known.
	From []string `json:"from,omitempty"`
	All  bool     `json:"all,omitempty"` // From is wherever the Service has endpoints, and more than one place
}

// The answers of a Cell, besides those of explain.
const (
	OwnNode explain.Answer = "own node"        // each Node uses its own endpoints only
	ByNode  explain.Answer = "differs by node" // the Nodes of the unit have different answers
)

const nodeUnknown = "(unknown node)"

// String returns the text of the cell in a table.
func (c *Cell) String() string {
	switch {
	case c.Answer == explain.NoRules:
		return ""
	case c.Answer != explain.Answered:
		return string(c.Answer)
	case c.All:
		return "all"
	default:
		return table.List(c.From)
	}
}

// interned makes each Cell once.
type interned struct {
	made map[string]*Cell
	id   []byte // of the requested Cell
}

// cell returns the Cell with this content, which it makes once. from is sorted, and not kept.
func (c *interned) cell(answer explain.Answer, from []string, all bool) *Cell {
	c.id = strconv.AppendBool(append(c.id[:0], answer...), all)
	for _, place := range from {
		c.id = append(append(c.id, 0), place...)
	}
	if cell, found := c.made[string(c.id)]; found {
		return cell
	}
	cell := &Cell{Answer: answer, From: slices.Clone(from), All: all}
	c.made[string(c.id)] = cell
	return cell
}

// join returns one Cell for those in all that some has the indices of: their common one, or, if
// they differ, one with the answer why and the places of all.
func (c *interned) join(all []*Cell, some []int, why explain.Answer) *Cell {
	first := all[some[0]]
	if !slices.ContainsFunc(some, func(i int) bool { return all[i] != first }) {
		return first
	}
	var from []string
	for _, i := range some {
		from = append(from, all[i].From...)
	}
	slices.Sort(from)
	return c.cell(why, slices.Compact(from), false)
}

// places are where endpoints are, in terms of some keys.
type places struct{ byNode map[string]string }

func newPlaces(s topology.Snapshot, keys []string) places {
	p := places{byNode: make(map[string]string, len(s.Nodes))}
	for name, set := range s.Nodes {
		place := explain.Unit(keys, set)
		if len(keys) == 1 {
			place = set[keys[0]]
		}
		p.byNode[name] = cmp.Or(place, inNoUnit)
	}
	return p
}

// add adds the place of an endpoint on a node to a sorted list.
func (p places) add(to []string, node string) []string {
	place, known := p.byNode[node]
	if !known {
		place = nodeUnknown
	}
	if i, found := slices.BinarySearch(to, place); !found {
		to = slices.Insert(to, i, place)
	}
	return to
}

// cell returns what one node gets of a Service that has endpoints in the places everywhere.
func (p places) cell(c *interned, ports []*topology.ServicePort, everywhere []string) *Cell {
	each, indices := make([]*Cell, len(ports)), make([]int, len(ports))
	var from []string
	for i, sp := range ports {
		reached, answer := explain.ByClusterIP(sp)
		from = from[:0]
		for _, e := range reached {
			from = p.add(from, e.Node)
		}
		own := explain.InternalLocal(sp.Service) || sp.Closure.OwnOnly
		if answer == explain.Answered && own && !slices.ContainsFunc(reached, func(e topology.Endpoint) bool { return !e.Local }) {
			answer = OwnNode
		}
		each[i] = c.cell(answer, from, len(from) > 1 && slices.Equal(from, everywhere))
		indices[i] = i
	}
	return c.join(each, indices, explain.ByPort)
}
