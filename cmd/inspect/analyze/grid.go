package analyze

import (
	"maps"
	"slices"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/gridspec"
	"gridproxy/topology"
)

// gridCode returns the code for a reason of a gridspec.Mistake.
func gridCode(reason string) string {
	switch reason {
	case gridspec.ReasonNoUnits:
		return gridWithoutUnits
	case gridspec.ReasonMissingTemplate:
		return missingTemplate
	case gridspec.ReasonInvalidTemplate:
		return invalidTemplate
	default: // ReasonEmpty, ReasonInvalidKey
		return gridWithoutKey
	}
}

// gridAnnotations returns the names of the annotations that are read from a Grid of a kind.
// Those of a ServiceGrid for the node daemon are copied to its Services.
func gridAnnotations(k gridspec.Kind) []string {
	all := []string{
		v1.AnnotationRemovalGrace, v1.AnnotationRemovalBudget, v1.AnnotationAllowRemoval, v1.AnnotationUnitSelector,
		v1.AnnotationOnImmutableChange, v1.AnnotationMisplacedPods, v1.AnnotationPaused, v1.AnnotationMaxUnits,
		v1alpha1.AnnotationClusters, v1alpha1.AnnotationTargetNamespace,
	}
	if k == gridspec.ServiceGrid {
		all = append(all, topology.AnnotationPolicy, topology.AnnotationScheduler)
	}
	return all
}

func (a *analysis) gridMistakes() {
	known := map[string]*gridspec.NodeLabels{} // by key
	services := a.serviceNames()
	for _, g := range a.grids {
		add := func(code string, m gridspec.Mistake) {
			a.found[code] = append(a.found[code], raw{Object{string(g.Kind), g.Namespace, g.Name}, text(m.Wrong, m.Remedy)})
		}
		if problem, remedy := misnamedAnnotation(g.Annotations, gridAnnotations(g.Kind)); problem != "" {
			add(misnamed, gridspec.Mistake{Wrong: problem, Remedy: remedy})
		}
		if known[g.Key] == nil && len(a.nodes) > 0 {
			known[g.Key] = &gridspec.NodeLabels{Keys: a.carried, Values: a.values(g.Key)}
		}
		if g.NotDistributed {
			add(notDistributed, gridspec.FederationOff())
		}
		for _, name := range g.ServiceNames() {
			if !services[g.Namespace+"/"+name] && len(a.snapshot.Services) > 0 { // else nothing is known of Services
				add(missingService, gridspec.WithoutService(name))
			}
		}
		for _, m := range g.Mistakes(known[g.Key]) {
			add(gridCode(m.Reason), m)
		}
	}
}

// serviceNames returns the Services, and those that the ServiceGrids make, as namespace/name.
func (a *analysis) serviceNames() map[string]bool {
	names := map[string]bool{}
	for _, svc := range a.snapshot.Services {
		names[svc.Namespace+"/"+svc.Name] = true
	}
	for _, g := range a.config.Grids {
		if g.Kind == gridspec.ServiceGrid {
			names[g.Namespace+"/"+topology.ServiceName(g.Name)] = true
		}
	}
	return names
}

func (a *analysis) values(key string) []string {
	all := map[string]bool{}
	for _, set := range a.snapshot.Nodes {
		if value := set[key]; value != "" {
			all[value] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
