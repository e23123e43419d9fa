package gridspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology/similar"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// The reasons of mistakes, which units and conditions of a Grid have too.
const (
	ReasonEmpty           = "Empty"           // no gridUniqKey (SuperEdge's word)
	ReasonInvalidKey      = "InvalidKey"      // gridUniqKey is no label key
	ReasonMissingTemplate = "MissingTemplate" // the Grid has no template of the unit's name
	ReasonInvalidTemplate = "InvalidTemplate" // a template that no child can be made from
	ReasonNoUnits         = "NoUnits"         // no Node carries the key; of a Grid
	ReasonMissingService  = "MissingService"  // serviceName names no Service; of a StatefulSetGrid
	ReasonFederationOff   = "FederationOff"   // the controller does not distribute Grids; of a Grid
)

// Mistake is what is wrong with a Grid as it is written, whatever children exist.
type Mistake struct {
	Reason string // a word for programs
	Wrong  string // what is wrong, and where
	Remedy string // what to do
}

// KeyMistake returns what is wrong with the key; nil if it is valid. Without a valid key a Grid
// has no units, and nothing is done. The reason of a missing key is SuperEdge's.
func (s Spec) KeyMistake() *Mistake {
	switch {
	case s.Key == "":
		wrong, remedy, _ := strings.Cut(v1.MessageKeyMissing, ": ")
		return &Mistake{ReasonEmpty, wrong, remedy}
	case len(content.IsLabelKey(s.Key)) > 0:
		return &Mistake{ReasonInvalidKey, fmt.Sprintf("spec.gridUniqKey is %q", s.Key), v1.MessageKeyInvalid}
	}
	return nil
}

// WithoutService returns what is wrong with a StatefulSetGrid if a template's serviceName is
// name and no such Service exists. The caller has checked that.
func WithoutService(name string) Mistake {
	return Mistake{
		ReasonMissingService, fmt.Sprintf("serviceName is %q, and there is no such Service, so the Pods have no DNS names of their own", name),
		"create a headless Service of that name, or correct serviceName; the Service of a ServiceGrid has the Grid's name and -svc behind it",
	}
}

// ServiceNames returns the serviceNames of a StatefulSetGrid's templates in use, sorted; nil
// for another kind. A template that cannot be read, or that sets no serviceName, is left out.
func (s Spec) ServiceNames() []string {
	if s.Kind != StatefulSetGrid {
		return nil
	}
	names := map[string]bool{}
	used := append(slices.Sorted(maps.Values(s.Templates)), s.defaultTemplate())
	for _, template := range slices.Compact(used) {
		spec, _ := s.Decoded(cmp.Or(template, v1.DefaultTemplate))
		if name, _ := spec["serviceName"].(string); name != "" {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// FederationOff returns what is wrong with a Grid that asks to be distributed, where the controller
// does not distribute Grids.
func FederationOff() Mistake {
	return Mistake{
		ReasonFederationOff, `the label superedge.io/fed: "yes" has no effect, because this grid-controller does not distribute Grids`,
		"run it with --federation=hub, or remove the label",
	}
}

// WithoutUnits returns what is wrong if no Node has a value for the Grid's key, which the
// caller has checked. nodeKeys are the keys that Nodes have: it suggests similar ones.
func (s Spec) WithoutUnits(nodeKeys []string) Mistake {
	m := Mistake{ReasonNoUnits, "no Node has the label " + s.Key, "label Nodes with it to have a unit"}
	if keys := similar.Names(s.Key, nodeKeys); len(keys) > 0 {
		m.Remedy += ", or correct gridUniqKey: Nodes have the similar " + strings.Join(keys, ", ")
	}
	return m
}

// NodeLabels are the labels of all Nodes, as far as they matter to a Grid.
type NodeLabels struct {
	Keys   []string // for which a Node has a value
	Values []string // that Nodes have for the Grid's key
}

// Mistakes returns the mistakes in a Grid: of its key, and of the templates that templates and
// defaultTemplateName name, the default one only if a unit gets it or no unit is known. nil
// nodes: nothing is known of units.
func (s Spec) Mistakes(nodes *NodeLabels) []Mistake {
	var all []Mistake
	if m := s.KeyMistake(); m != nil {
		all = append(all, *m)
	} else if nodes != nil && len(nodes.Values) == 0 {
		all = append(all, s.WithoutUnits(nodes.Keys))
	}
	var values []string
	if nodes != nil {
		values = nodes.Values
	}
	names := map[string]bool{}
	for value := range s.Templates {
		names[s.TemplateName(value)] = true
	}
	others := func(value string) bool { _, found := s.Templates[value]; return !found }
	if len(values) == 0 || slices.ContainsFunc(values, others) {
		names[s.defaultTemplate()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if _, m := s.Decoded(name); m != nil {
			all = append(all, *m)
		}
	}
	return all
}
