package assign

import (
	"maps"
	"slices"
	"strings"

	"gridproxy/controller/api/site/v1alpha2"

	"k8s.io/apimachinery/pkg/util/sets"
)

// gone are the keys that this plan removes from some Node. The deletion of an object waits until no
// Node has its keys.
type gone struct{ labels, annotations, taints sets.Set[string] }

func newGone() gone {
	return gone{labels: sets.New[string](), annotations: sets.New[string](), taints: sets.New[string]()}
}

// newNodeStep returns what to write to a Node so that it has what is requested, what it keeps,
// and nothing else of ours; nil if nothing is to be written. foreign are taints that the Node
// calls ours and that are not. Keys that are removed are added to leaves.
func newNodeStep(n *Node, c *nodeRequests, keeps map[string]string, leaves gone) (s *NodeStep, foreign []string) {
	if c == nil {
		c = &nodeRequests{}
	}
	step := NodeStep{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Overclaims: n.Overclaims}
	labels := side{what: "label ", has: n.Labels, owned: n.Owned.Labels, foreign: n.Foreign.Labels, legacy: n.Legacy.Labels, restricted: v1alpha2.RestrictedKey}
	annotations := side{what: "annotation ", has: n.Annotations, owned: n.Owned.Annotations, foreign: n.Foreign.Annotations, legacy: n.Legacy.Annotations}
	restrict := restriction{Node: n, leaves: leaves}
	ours, lacks := restrict.labels(c.labels, keeps)
	step.Taints, step.TaintRecord = restrict.taints(c.taints)
	restrict.removeOrphans() // before what is claimed is named again
	if len(keeps) > 0 || lacks || !labels.atRest(c.labels) || !annotations.atRest(c.annotations) {
		want := Metadata{Labels: labels.want(n.Name, c.labels), Annotations: annotations.want(n.Name, c.annotations)}
		maps.Copy(want.Labels, ours)
		restrict.nameClaimed(want.Labels)
		step.keep(n, keeps, want, leaves)
		if labels.differs(want.Labels) || annotations.differs(want.Annotations) {
			step.Apply = &want
		}
		step.Drop = Metadata{Labels: labels.drop(want.Labels), Annotations: annotations.drop(want.Annotations)}
		labels.leaving(want.Labels, step.Drop.Labels, leaves.labels)
		annotations.leaving(want.Annotations, step.Drop.Annotations, leaves.annotations)
	}
	step.Converts = restrict.converts
	if len(restrict.patch) > 0 {
		step.Restricted = restrict.patch
		leaves.labels.Insert(slices.Collect(maps.Keys(restrict.patch))...)
	}
	if step.Apply == nil && len(step.Drop.Labels)+len(step.Drop.Annotations)+len(step.Restricted) == 0 &&
		step.Taints == nil && step.TaintRecord == nil && !step.Overclaims {
		return nil, restrict.foreign
	}
	return &step, restrict.foreign
}

// keep adds what the Node keeps to what it gets, and records it. The deletion of an object waits
// for the record, because it is decided by what exists whether a label is kept.
func (s *NodeStep) keep(n *Node, keeps map[string]string, want Metadata, leaves gone) {
	if len(keeps) == 0 {
		return
	}
	keys := slices.Sorted(maps.Keys(keeps))
	for _, key := range keys {
		if !restricted(key) {
			want.Labels[key] = keeps[key]
		}
		if !n.isKept(key) {
			s.Kept = append(s.Kept, key)
			leaves.labels.Insert(key)
		}
	}
	want.Annotations[v1alpha2.AnnotationKeptLabels] = strings.Join(keys, ",")
}

// side is a Node's labels or its annotations, without what is restricted.
type side struct {
	what                   string
	has                    map[string]string
	owned, foreign, legacy sets.Set[string]
	restricted             func(key string) bool
}

// skips reports whether the key is not for an apply to decide.
func (s side) skips(key string) bool { return s.restricted != nil && s.restricted(key) }

// atRest reports whether the Node has what is requested, and nothing more that is ours. It
// answers quickly for most Nodes.
func (s side) atRest(requested map[string]request) bool {
	if len(requested) != s.owned.Len() || s.legacy.Len() > 0 {
		return false
	}
	for key, c := range requested {
		if value, has := s.has[key]; !has || value != c.value || c.frozen || !s.owned.Has(key) {
			return false
		}
	}
	for key, value := range s.has {
		if _, wanted := requested[key]; value == v1alpha2.UnitMark && !wanted {
			return false
		}
	}
	return true
}

// want returns the values to apply: what is requested, without wishes for which another program
// has set another value.
func (s side) want(node string, requested map[string]request) map[string]string {
	want := make(map[string]string, len(requested))
	for key, c := range requested {
		if s.skips(key) {
			continue
		}
		value, has := s.has[key]
		if c.frozen {
			if has && s.ours(key) {
				want[key] = value
			}
			continue
		}
		if c.wish && has && value != c.value && !s.ours(key) {
			c.reportForeignValue(node, s.what+key, value)
			continue
		}
		want[key] = c.value
	}
	return want
}

// ours reports whether only we, or SuperEdge before us, have set the key.
func (s side) ours(key string) bool {
	return !s.foreign.Has(key) && s.owned.Has(key) || s.legacy.Has(key)
}

// differs reports whether the Node lacks something that is wanted, or whether the keys that we own
// are not exactly those that are wanted.
func (s side) differs(want map[string]string) bool {
	if len(want) != s.owned.Len() {
		return true
	}
	for key, value := range want {
		if got, found := s.has[key]; !found || got != value || !s.owned.Has(key) {
			return true
		}
	}
	return false
}

// drop returns the keys that an apply alone does not remove, with their values: those that
// SuperEdge owns too, and any label that says that a unit holds the Node although none does
// (S-10).
func (s side) drop(want map[string]string) map[string]string {
	var out map[string]string
	for key, value := range s.has {
		if s.skips(key) || value != v1alpha2.UnitMark && (!s.legacy.Has(key) || reserved(key)) {
			continue
		}
		if _, wanted := want[key]; wanted || s.owned.Has(key) && !s.foreign.Has(key) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}

func (s side) leaving(want, drop map[string]string, into sets.Set[string]) {
	for key := range drop {
		into.Insert(key)
	}
	for key := range s.owned {
		if _, stays := want[key]; !stays {
			into.Insert(key)
		}
	}
}

// reserved reports whether a label is one of the others that SuperEdge's site-manager sets, for
// units with their own control plane. They are not ours to remove.
func reserved(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "superedge.io" || strings.HasSuffix(prefix, ".superedge.io")
}
