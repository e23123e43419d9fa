package assign

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"gridproxy/controller/api/site/v1alpha2"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Restricted are all taints, and the labels of v1alpha2.RestrictedKey: what the API server keeps a
// kubelet from writing to its own Node. A kubelet does write annotations and managedFields there.
// So each restricted thing that is ours has a record, a label that is restricted itself. While a
// unit converts, what earlier releases have set gets one; besides, nothing else says whose it is.
// The record of a taint is written in one patch with it, and that of a label before it.

// recordOf returns the key of the record of a taint's key:effect, or of a label's key.
func recordOf(thing string) string {
	sum := sha256.Sum256([]byte(thing))
	return v1alpha2.RecordPrefix + hex.EncodeToString(sum[:8])
}

func isRecord(key string) bool { return strings.HasPrefix(key, v1alpha2.RecordPrefix) }

// restricted reports whether a label needs a record to be ours.
func restricted(key string) bool { return v1alpha2.RestrictedKey(key) && !isRecord(key) }

func (n *Node) hasRecords() bool {
	for key := range n.Labels {
		if isRecord(key) {
			return true
		}
	}
	return false
}

// record returns the record of a taint's key:effect, or of a label's key; "": it has no record.
func (n *Node) record(thing string) string {
	if !n.hasRecords() {
		return ""
	}
	return n.Labels[recordOf(thing)]
}

// isOurs reports whether a unit has set the taint with this key:effect, or the restricted label.
func (n *Node) isOurs(thing string) bool { return n.record(thing) != "" }

func (n *Node) isKept(key string) bool {
	if restricted(key) {
		return n.record(key) == v1alpha2.RecordKept
	}
	return readKeys(n.Annotations[v1alpha2.AnnotationKeptLabels]).Has(key)
}

// ours returns the labels that we alone have set.
func (n *Node) ours() sets.Set[string] {
	keys := n.Owned.Labels.Difference(n.Foreign.Labels)
	for key := range n.Labels {
		if !restricted(key) {
			continue
		}
		if keys.Delete(key); n.isOurs(key) {
			keys.Insert(key)
		}
	}
	return keys
}

// converts reports whether the unit may have set things on Nodes before there were records.
func (u *unit) converts() bool {
	return !u.leaving() && !u.Status.RestrictedRecorded && slices.Contains(u.Finalizers, v1alpha2.FinalizerUnit)
}

// restriction is what is decided about what is restricted on one Node. patch is
// NodeStep.Restricted.
type restriction struct {
	*Node
	patch    map[string]*string
	records  []string // that are about something which the Node has or gets
	foreign  []string // taints that the Node's annotation calls ours, and that have no record
	converts bool
	leaves   gone
}

// write writes a record to the patch if the Node has another one or none.
func (r *restriction) write(thing, as string) {
	key := recordOf(thing)
	r.records = append(r.records, key)
	if r.Labels[key] != as {
		r.set(key, &as)
	}
}

// set writes a label to the patch; nil: it goes.
func (r *restriction) set(key string, value *string) {
	if r.patch == nil {
		r.patch = map[string]*string{}
	}
	r.patch[key] = value
}

// labels returns the restricted labels that are ours and that the Node is to have, and whether it
// lacks any. Their records, and which labels go, are written to the patch. Without a record a label
// is never changed.
func (r *restriction) labels(requested map[string]request, keeps map[string]string) (ours map[string]string, lacks bool) {
	have := func(key, value, record string) {
		if ours == nil {
			ours = map[string]string{}
		}
		ours[key] = value
		r.write(key, record)
		has, there := r.Labels[key]
		lacks = lacks || !there || has != value
	}
	for key, value := range r.Labels {
		if !restricted(key) {
			continue
		}
		c, wanted := requested[key]
		_, kept := keeps[key]
		isOurs := r.isOurs(key)
		if !isOurs && c.converts && c.value == value && (r.Owned.Labels.Has(key) || r.Legacy.Labels.Has(key)) {
			isOurs, r.converts = true, true
		}
		switch {
		case isOurs && kept:
			have(key, value, v1alpha2.RecordKept)
		case isOurs && !wanted:
			r.set(key, nil)
			r.leaves.labels.Insert(key)
		case isOurs && c.frozen:
			have(key, value, v1alpha2.RecordLabel)
		case isOurs:
			have(key, c.value, v1alpha2.RecordLabel)
		case wanted && !c.frozen && c.value != value:
			c.reportForeignValue(r.Name, "label "+key, value)
		}
	}
	for key, c := range requested {
		if _, there := r.Labels[key]; !there && restricted(key) && !c.frozen {
			have(key, c.value, v1alpha2.RecordLabel)
		}
	}
	return ours, lacks
}

// nameClaimed adds to what is applied the restricted labels and records that managedFields call
// ours besides, with the values that they have by then: an apply that does not name one removes it.
func (r *restriction) nameClaimed(want map[string]string) {
	for key := range r.Owned.Labels {
		value, there := r.Labels[key]
		if patched, found := r.patch[key]; found {
			if there = patched != nil; there {
				value = *patched
			}
		}
		if _, named := want[key]; there && !named && v1alpha2.RestrictedKey(key) {
			want[key] = value
		}
	}
}

// removeOrphans writes to the patch which records go: those that are about nothing which the Node
// has or gets.
func (r *restriction) removeOrphans() {
	for key := range r.Labels {
		if isRecord(key) && !slices.Contains(r.records, key) {
			r.set(key, nil)
		}
	}
}
