package assign

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/flips"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// found is a unit that autoFindNodeKeys asks for.
type found struct {
	name  string
	pairs map[string]string // the labels that its Nodes have
	nodes []string          // their names
}

// FindName returns the name of the unit for Nodes with these values of the sorted keys: the
// values joined by "-", as in SuperEdge. If that is not valid as an object's name and a label,
// it returns its SHA-1 in hexadecimal. SuperEdge does that for "/" and for 64 characters and
// more, and failed for capitals and "_" (S-08).
func FindName(values []string) string {
	name := strings.Join(values, "-")
	if len(name) > v1alpha2.MaxName || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return sha1Hex(name)
	}
	return name
}

func keysHash(sortedKeys []string) string { return sha1Hex(strings.Join(sortedKeys, "")) }

func sha1Hex(s string) string {
	sum := sha1.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// find returns the units that the group's keys ask for, by name. A Node that lacks a key, or has
// an empty value, asks for none. If two combinations of values result in one name, the one for
// which the unit exists gets it, else the first by its values.
func (g *group) find(nodes []*Node, exists map[string]*unit) map[string]found {
	if len(g.keys) == 0 || g.leaving() || v1alpha2.ValidateName(g.Name) != nil {
		return nil
	}
	wanted := map[string]found{}
	for _, n := range nodes {
		values := make([]string, len(g.keys))
		for i, key := range g.keys {
			values[i] = n.Labels[key]
		}
		if slices.Contains(values, "") {
			continue
		}
		f := found{name: FindName(values), pairs: map[string]string{}, nodes: []string{n.Name}}
		for i, key := range g.keys {
			f.pairs[key] = values[i]
		}
		before, taken := wanted[f.name]
		if !taken || maps.Equal(before.pairs, f.pairs) {
			f.nodes = append(before.nodes, n.Name)
			wanted[f.name] = f
			continue
		}
		first, other := before, f
		if spell(f.pairs) < spell(before.pairs) {
			first, other = f, before
		}
		if u := exists[f.name]; u != nil && g.isMadeFor(u, other) { // a Node cannot take its name away by a label
			first, other = other, first
		}
		g.conflict("Nodes with %s and Nodes with %s would both form a unit named %s; only the first do: change the labels of the others",
			spell(first.pairs), spell(other.pairs), f.name)
		wanted[f.name] = first
	}
	return wanted
}

func spell(pairs map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		all = append(all, key+"="+pairs[key])
	}
	return strings.Join(all, ",")
}

// hasFound reports whether the group's keys have found the unit, now or before: the unit was
// created for these keys and has the label of the group, or it is wanted now and is exactly as it
// would be created. A unit of that name that was created otherwise belongs to its creator.
func (g *group) hasFound(u *unit, wanted map[string]found) bool {
	if len(g.keys) == 0 {
		return false
	}
	f, isWanted := wanted[u.Name]
	if !isWanted {
		return u.Labels[v1alpha2.LabelKeysHash] == keysHash(g.keys) && u.Labels[g.Name] == v1alpha2.GroupMark
	}
	if g.isMadeFor(u, f) {
		return true
	}
	g.conflict("the NodeUnit %s was not made for Nodes with %s, which the group needs: rename it, or change the labels", u.Name, spell(f.pairs))
	return false
}

// isMadeFor reports whether the unit was created for the group's keys and these values.
func (g *group) isMadeFor(u *unit, f found) bool {
	// A unit of SuperEdge may lack a selector (S-08).
	return u.Labels[v1alpha2.LabelKeysHash] == keysHash(g.keys) && u.Spec.Selector != nil && maps.Equal(u.Spec.Selector.MatchLabels, f.pairs)
}

// create returns the units that groups have found and that do not exist. Each has an owner
// reference to every group that wants it, so that garbage collection removes it after the last
// of them. Two groups that want one name for different Nodes are a conflict, and the first by
// name wins (S-08).
func create(groups []*group, finds []map[string]found, exists map[string]*unit) []*v1alpha2.NodeUnit {
	made := map[string]*v1alpha2.NodeUnit{}
	for i, g := range groups {
		for _, name := range slices.Sorted(maps.Keys(finds[i])) {
			f := finds[i][name]
			switch before := made[name]; {
			case exists[name] != nil:
			case before == nil:
				made[name] = g.newUnit(f)
			case maps.Equal(before.Spec.Selector.MatchLabels, f.pairs):
				before.Labels[g.Name] = v1alpha2.GroupMark
				before.OwnerReferences = append(before.OwnerReferences, g.owner())
			default:
				g.conflict("the NodeUnit %s is made for another group's Nodes with %s, not for those with %s: change the labels",
					name, spell(before.Spec.Selector.MatchLabels), spell(f.pairs))
			}
		}
	}
	var all []*v1alpha2.NodeUnit
	for _, name := range slices.Sorted(maps.Keys(made)) {
		all = append(all, made[name])
	}
	return all
}

func (g *group) newUnit(f found) *v1alpha2.NodeUnit {
	return &v1alpha2.NodeUnit{
		ObjectMeta: metav1.ObjectMeta{
			Name:            f.name,
			Labels:          map[string]string{v1alpha2.LabelKeysHash: keysHash(g.keys), g.Name: v1alpha2.GroupMark},
			Annotations:     maps.Clone(f.pairs),
			OwnerReferences: []metav1.OwnerReference{g.owner()},
		},
		Spec: v1alpha2.NodeUnitSpec{Type: "edge", Selector: &v1alpha2.Selector{MatchLabels: f.pairs}},
	}
}

func (g *group) owner() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha2.GroupVersion().String(), Kind: kindGroup, Name: g.Name, UID: g.UID}
}

// newDefault returns the unit of all Nodes, as SuperEdge makes it.
func newDefault(name string) *v1alpha2.NodeUnit {
	return &v1alpha2.NodeUnit{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha2.NodeUnitSpec{
			Type: "other", Selector: &v1alpha2.Selector{MatchLabels: map[string]string{"kubernetes.io/os": "linux"}},
		},
	}
}

// admit removes from what the group finds the new units that are not to be made: those of Nodes
// that have brought too many, and all of them if the group would have more units than it may.
func (d *decision) admit(g *group, find map[string]found) {
	keys, fresh, number := strings.Join(g.keys, ","), map[string][]string{}, 0
	for name, f := range find {
		if d.unitByName[name] == nil {
			fresh[name] = f.nodes
		}
	}
	for _, u := range d.units {
		if u.Labels[v1alpha2.LabelKeysHash] != "" && u.Labels[g.Name] == v1alpha2.GroupMark {
			number++
		}
	}
	a := d.Flips[g.UID].Admit(keys, fresh, d.NewUnits, d.Now)
	if d.plan.Flips == nil {
		d.plan.Flips = map[types.UID]flips.Log{}
	}
	d.plan.Flips[g.UID] = a.Log
	d.plan.recheckAt(a.Next(), d.Now)
	for _, r := range a.Report {
		d.plan.Refused = append(d.plan.Refused, Refused{Group: g.Name, UID: g.UID, Note: r.Message("autoFindNodeKeys "+keys, d.NewUnits)})
	}
	for name := range a.Refused {
		delete(find, name)
		delete(fresh, name)
	}
	if number += len(fresh); d.MaxUnits > 0 && number > d.MaxUnits && len(fresh) > 0 {
		g.report.add(v1alpha2.ConditionInvalid, "TooManyUnits", fmt.Sprintf("autoFindNodeKeys asks for %d units, more than the limit of %d "+
			"(--max-units), so %d NodeUnits are not created: check the keys, or raise the limit", number, d.MaxUnits, len(fresh)))
		for name := range fresh {
			delete(find, name)
		}
	}
}
