package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/topology/dnsview"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// gridChildren are the names of the StatefulSets that Grids have in units. A name is made and then
// compared as a whole: no part of a host name is taken for a unit's value.
type gridChildren struct {
	grids []types.NamespacedName              // sorted
	named map[namespaceUnit]map[string]string // the Grid by the name of its child; made on first use
}

type namespaceUnit struct{ namespace, value string }

func newGridChildren(grids []types.NamespacedName) *gridChildren {
	return &gridChildren{grids: grids, named: map[namespaceUnit]map[string]string{}}
}

// in returns the Grids of a namespace by the name of their child in the unit with the value; nil
// if the namespace has no Grid, or value is "".
func (c *gridChildren) in(namespace, value string) map[string]string {
	first, found := slices.BinarySearchFunc(c.grids, namespace, func(g types.NamespacedName, namespace string) int {
		return cmp.Compare(g.Namespace, namespace)
	})
	if !found || value == "" {
		return nil
	}
	unit := namespaceUnit{namespace, value}
	if named, made := c.named[unit]; made {
		return named
	}
	named := map[string]string{}
	for _, g := range c.grids[first:] {
		if g.Namespace != namespace {
			break
		}
		if child := StatefulSetName(g.Name, value); named[child] == "" { // a hash that two share: the first by name
			named[child] = g.Name
		}
	}
	c.named[unit] = named
	return named
}

// cutOrdinal splits a Pod's host name into the name of its StatefulSet and the ordinal. It
// returns false if there is no ordinal as a StatefulSet writes it, without leading zeros.
func cutOrdinal(hostname string) (child, ordinal string, ok bool) {
	i := strings.LastIndexByte(hostname, '-')
	if i < 1 {
		return "", "", false
	}
	child, ordinal = hostname[:i], hostname[i+1:]
	digits := ordinal != "" && strings.Trim(ordinal, "0123456789") == ""
	return child, ordinal, digits && (ordinal == "0" || ordinal[0] != '0')
}

// addAliases adds to out the aliases, which are the same in every unit, and what of them is not
// served. open are the endpoints that closure leaves, ready or not, so that a name leads to the
// same Pod whether others are ready or not. A name that an endpoint has itself stays with it.
// Of two endpoints with one alias, the one whose unit is that of the earlier key has it.
func (d dnsInputs) addAliases(out *DNSService, keys []string, open []namedCandidate) {
	hostnames := map[string]bool{}
	for _, e := range open {
		hostnames[e.hostname] = true
	}
	served := map[string]bool{}
	for _, e := range out.Endpoints {
		served[e.Hostname] = true
	}
	given := map[string]string{} // host name by alias
	var left ignored
	var sorted []string
	for _, key := range keys {
		children := d.children.in(out.Service.Namespace, d.labels[key])
		if len(children) == 0 {
			continue
		}
		if sorted == nil {
			sorted = slices.Sorted(maps.Keys(hostnames))
		}
		for _, hostname := range sorted {
			child, ordinal, numbered := cutOrdinal(hostname)
			grid, found := children[child]
			alias := grid + "-" + ordinal
			switch holder, taken := given[alias]; {
			case !found || !numbered || holder == hostname:
			case len(validation.IsDNS1123Label(alias)) > 0:
				left.add(fmt.Errorf("%s would give the alias %s, which is not a DNS label", excerpt.Of(grid), excerpt.Quoted(alias)))
			case taken || hostnames[alias]:
				out.Collisions = append(out.Collisions, alias)
			default:
				given[alias] = hostname
				if served[hostname] {
					out.Aliases = append(out.Aliases, dnsview.Alias{Alias: alias, Hostname: hostname})
				}
			}
		}
	}
	slices.SortFunc(out.Aliases, func(a, b dnsview.Alias) int { return cmp.Compare(a.Alias, b.Alias) })
	slices.Sort(out.Collisions)
	out.Collisions = slices.Compact(out.Collisions)
	out.Warnings = append(out.Warnings, left.warning("StatefulSetGrid")...)
}
