package delivery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"
	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons why a Grid is not in the cluster as it was sent.
const (
	ReasonNameCollision    = "NameCollision"
	ReasonNamespaceMissing = "NamespaceMissing"
	ReasonNamespaceRefused = "NamespaceRefused"
	ReasonKindMissing      = "KindMissing"
	ReasonForeignObject    = "ForeignObject"
	ReasonApplyFailed      = "ApplyFailed"
	ReasonNotPruned        = "NotPruned"
	ReasonEngineMissing    = "EngineMissing"
	ReasonEngineIdle       = "EngineIdle"
	ReasonClusterReplaced  = "ClusterReplaced"
	ReasonBundleUnread     = "BundleUnread"
	ReasonCopyUnread       = "CopyUnread"
	ReasonOtherHub         = "OtherHub"
	ReasonNotDone          = "NotDone"
	ReasonUnreachable      = "Unreachable"
	ReasonKubeConfig       = "KubeConfigInvalid"
	ReasonTooLarge         = "TooLarge"
)

// admission is a decision under way.
type admission struct {
	Observed
	// claims are who has a name.
	claims map[Key]claim
	// wanted are all Grids that the hub wants here or that are here from it, and problems is what
	// keeps some of them away, by the annotation AnnotationFrom.
	wanted   map[string]Object
	problems map[string]v1alpha1.Problem
	foreign  *v1alpha1.Problem // the last of those about objects that no hub sends
}

// mayMake reports whether a namespace of this name is made for Grids. Those of Kubernetes itself
// are not.
func (a *admission) mayMake(namespace string) bool {
	return namespace != "default" && !strings.HasPrefix(namespace, "kube-") && a.accepts(namespace)
}

// accepts reports whether the cluster takes Grids of a hub into the namespace.
func (a *admission) accepts(namespace string) bool {
	return len(a.Accept) == 0 || slices.Contains(a.Accept, namespace)
}

// ownNamespace returns, as JSON, the Namespace to make for the hub's: with its name and the
// labels that confine its Pods, and nothing else of it.
func ownNamespace(o Object) []byte {
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal(o.JSON, &sent); err != nil {
		sent.Labels = nil // it was read as JSON, so its labels are no texts
	}
	return archive.Namespace(o.Name, sent.Labels)
}

// claim is a Grid in a set: the annotation AnnotationFrom tells which.
type claim struct{ set, from string }

// claim enters the names of what is applied into a.claims, for the set that comes first by
// name. What the hub has withdrawn and does not send again claims nothing.
func (a *admission) claim() {
	for _, set := range a.names() {
		for _, o := range a.Copies[set].Objects {
			_, claimed := a.claims[o.Key]
			if o.Kind == "Namespace" || claimed || a.withdrawn(o.From) && !a.sends(set, o.From) && !a.unread(set) {
				continue
			}
			a.claims[o.Key] = claim{set, o.From}
		}
	}
}

// admit returns what of the hub's set is to be applied, and what is applied already and not
// withdrawn; nil if that has no Grid. Of a set that is unread it returns what is applied. It
// enters claims, and what keeps Grids away, into a.
func (a *admission) admit(set string) []Object {
	bundle, copied := a.Bundles[set], a.Copies[set]
	if a.unread(set) {
		return copied.Objects
	}
	var admitted []Object
	in := map[string]bool{}
	for _, o := range bundle.Objects {
		if o.Kind == "Namespace" {
			if a.mayMake(o.Name) {
				admitted = append(admitted, Object{Key: o.Key, JSON: ownNamespace(o)})
			}
			continue
		}
		if in[o.From] {
			continue // it is there twice
		}
		if foreign := foreignObject(a.Hub, set, o); foreign != nil {
			a.foreign = foreign
			continue
		}
		a.wanted[o.From] = o
		if problem := a.obstacle(set, o); problem != nil {
			a.problems[o.From] = *problem
			continue
		}
		a.claims[o.Key], in[o.From] = claim{set, o.From}, true
		admitted = append(admitted, o)
	}
	for _, o := range copied.Objects { // what seems to have no namespace or kind is applied as before
		if o.Kind != "Namespace" && !in[o.From] && a.claims[o.Key] == (claim{set, o.From}) && a.owner(set, o) == "" {
			admitted = append(admitted, o)
		}
	}
	if !slices.ContainsFunc(admitted, func(o Object) bool { return o.Kind != "Namespace" }) {
		return nil // a Namespace alone is never removed, so it need not be applied either
	}
	slices.SortFunc(admitted, func(x, y Object) int { return compareKeys(x.Key, y.Key) })
	return admitted
}

// unread reports whether the set is not known whole, or another hub has sent it. Then what is
// applied of it stays.
func (a *admission) unread(set string) bool {
	return a.Bundles[set].Unread != "" || a.Copies[set].Unread != "" || a.ofOtherHub(set)
}

// ofOtherHub reports whether another hub sent what is applied. Only that hub can withdraw it.
func (a *admission) ofOtherHub(set string) bool {
	return slices.ContainsFunc(a.Copies[set].Objects, func(o Object) bool { return o.Kind != "Namespace" && !strings.HasPrefix(o.From, a.Hub+"/") })
}

// withdrawn reports whether the hub says that it has removed this Grid from the cluster.
func (a *admission) withdrawn(from string) bool {
	uid, ours := strings.CutPrefix(from, a.Hub+"/")
	return ours && slices.Contains(a.Fleet.Status.Withdrawn, uid)
}

// foreignObject returns what is wrong with an object that this hub would not send, or nil.
func foreignObject(hub, name string, o Object) *v1alpha1.Problem {
	if !slices.Contains(v1.Kinds(), o.Kind) {
		return problem(ReasonForeignObject, "bundle %s has a %s, and only Grids are applied: see who writes GridBundles on the hub", name, excerpt.Fit(o.Kind, 64))
	}
	if !strings.HasPrefix(o.From, hub+"/") {
		return problem(ReasonForeignObject, "bundle %s has the %s %s/%s, of which the annotation %s does not name this hub: see who writes GridBundles on the hub",
			name, o.Kind, excerpt.Fit(o.Namespace, 64), excerpt.Fit(o.Name, 64), v1alpha1.AnnotationFrom)
	}
	return nil
}

// obstacle returns why a Grid cannot be applied; nil if it can be.
func (a *admission) obstacle(set string, o Object) *v1alpha1.Problem {
	if a.Missing.Kinds[o.Kind] {
		return problem(ReasonKindMissing, "the cluster does not know the kind %s: install the CustomResourceDefinitions there with: "+
			"kubectl apply --server-side -k deploy/crds", o.Kind)
	}
	if !a.accepts(o.Namespace) {
		return problem(ReasonNamespaceRefused, "the cluster does not take Grids into namespace %s: add it to --accept-namespaces of grid-controller there, "+
			"or remove it from spec.namespaces of the FleetCluster; what is there stays as it is", o.Namespace)
	}
	if a.Missing.Namespaces[o.Namespace] && !a.makes(set, o.Namespace) {
		return problem(ReasonNamespaceMissing, "the cluster has no namespace %s: create it there, or set createNamespace: true in the FleetCluster", o.Namespace)
	}
	if owner := a.owner(set, o); owner != "" {
		return problem(ReasonNameCollision, "%s %s/%s exists in the cluster and belongs to %s: rename one of the two. To have the one of the hub in its place, "+
			"and leave the Pods: kubectl delete --cascade=orphan -n %s %s %s", o.Kind, o.Namespace, o.Name, owner, o.Namespace, strings.ToLower(o.Kind), o.Name)
	}
	return nil
}

// makes reports whether the hub's bundle has the namespace, which is made then.
func (a *admission) makes(set, namespace string) bool {
	return slices.ContainsFunc(a.Bundles[set].Objects, func(o Object) bool { return o.Kind == "Namespace" && o.Name == namespace })
}

// owner returns who has the name of a Grid in the cluster, for people; "": it is free, or ours.
func (a *admission) owner(set string, o Object) string {
	if other, claimed := a.claims[o.Key]; claimed && other != (claim{set, o.From}) {
		if !strings.HasPrefix(other.from, a.Hub+"/") {
			return "another hub"
		}
		return "another Grid of this hub, with the annotation " + excerpt.Fit(other.from, 128)
	}
	live, found := a.Grids[o.Key]
	switch {
	case !found || live.From == o.From || strings.HasPrefix(live.From, a.Hub+"/"):
		return "" // one of this hub that claims nothing was withdrawn
	case live.From != "":
		return "another hub"
	case slices.ContainsFunc(a.Copies[set].Objects, func(c Object) bool { return c.Key == o.Key && c.From == o.From }):
		return "" // a user has removed the annotation, and Flux puts it back
	}
	return "the cluster itself"
}

// sends reports whether the hub has a Grid with this annotation for the cluster, in this set.
func (a *admission) sends(set, from string) bool {
	return slices.ContainsFunc(a.Bundles[set].Objects, func(o Object) bool { return o.From == from })
}

func problem(reason, format string, args ...any) *v1alpha1.Problem {
	return &v1alpha1.Problem{Reason: reason, Message: excerpt.Fit(fmt.Sprintf(format, args...), v1alpha1.MaxMessage)}
}
