package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Applied is what was last applied to a child, and the result. A controller remembers it of its own
// applies. Of those before it started, it is found on the child: see recognise.
type Applied struct {
	UID     types.UID
	Desired string // Fingerprint of the Child
	Owned   string // fingerprint of Live.Owned after the apply
	// Before and After are the child's resourceVersions around the apply: a Live with Before is
	// older than the apply. "" for an apply of an earlier controller.
	Before, After string
	// Refused is the API server's answer if it does not accept this Desired. The child is not
	// applied until Desired changes or the caller forgets the answer.
	Refused *Problem
}

// WithFingerprint returns the object to apply for a child. A workload has its Fingerprint as a
// label, in the same write. The object shares parts with c, but not its metadata.
//
// It is a label because a new annotation of a Deployment is a new generation of it, and is copied
// to its ReplicaSets. A Service has none, because its labels are copied to its EndpointSlices, and
// its annotations are for users to read; there is one for each Grid, not one for each unit.
func WithFingerprint(c Child, print string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: maps.Clone(c.Object.Object)}
	metadata := own(o.Object, "metadata")
	if o.GetKind() != ServiceGrid.Child().Kind {
		own(metadata, "labels")[v1.LabelFingerprint] = print
	}
	return o
}

// recognise returns what an earlier controller has last applied to the unit's child, by the
// fingerprint on it. If it is not the desired child's, Owned is "". If it is, it counts only if
// we own exactly the fields that an apply makes ours, the fingerprint among them: another
// writer that changes or removes one takes it. If not, as when a webhook has changed what was
// applied, the result is zero, and the child is applied once.
func (u *unit) recognise() Applied {
	print := u.live.Fingerprint
	switch {
	case print == "" || u.Object == nil:
		return Applied{}
	case print != u.fingerprint():
		return Applied{UID: u.live.UID, Desired: print}
	}
	if owned, exact := u.memo.ownedBy(u.live, u.made); exact {
		return Applied{UID: u.live.UID, Desired: print, Owned: owned}
	}
	return Applied{}
}

// ownsExactly reports whether a fieldsV1 has the fields that an apply of a child with its
// fingerprint makes ours, and no others. The label templateHash may be among them, "" for none.
func ownsExactly(fieldsV1 string, c Child, print, templateHash string) bool {
	owned := fieldSet(fieldsV1)
	o := WithFingerprint(c, print)
	if templateHash != "" && owned.Has(fieldpath.MakePathOrDie("spec", "template", "metadata", "labels", v1.LabelTemplateHash)) {
		o = WithTemplateHash(o, templateHash)
	}
	metadata := own(o.Object, "metadata")
	// These identify an object, and have no owner.
	for _, field := range []string{"name", "namespace"} {
		delete(metadata, field)
	}
	for _, field := range []string{"apiVersion", "kind"} {
		delete(o.Object, field)
	}
	n, all := fieldsIn(owned, o.Object)
	return all && n == owned.Size()
}

// fieldsIn counts the fields of a set that an apply of an object makes ours, and reports
// whether none is missing. Which lists are sets or maps is not in the object. It is in the set.
func fieldsIn(owned *fieldpath.Set, object map[string]any) (int, bool) {
	n := 0
	for name, v := range object {
		m, all := fieldsAt(owned, fieldpath.FieldNameElement(name), v)
		if !all && v != nil {
			return 0, false
		}
		n += m
	}
	return n, true
}

// fieldsOfItems counts the fields of a set that an apply of a list makes ours, and reports
// whether none is missing, like fieldsIn. Each item of the list is a field of its own.
func fieldsOfItems(owned *fieldpath.Set, list []any) (int, bool) {
	n := 0
	for _, item := range list {
		e, found := findItem(owned, item)
		if !found {
			return 0, false
		}
		m, all := fieldsAt(owned, e, item)
		if !all {
			return 0, false
		}
		n += m
	}
	return n, true
}

// fieldsAt counts the fields for the value v of one field or item e, like fieldsIn. A field
// with nothing below it in the set is owned as a whole.
func fieldsAt(owned *fieldpath.Set, e fieldpath.PathElement, v any) (int, bool) {
	n := 0
	if owned.Members.Has(e) {
		n = 1
	}
	below, found := owned.Children.Get(e)
	if !found {
		return n, n == 1
	}
	m, all := 0, false
	switch v := v.(type) {
	case map[string]any:
		m, all = fieldsIn(below, v)
	case []any:
		m, all = fieldsOfItems(below, v)
	}
	return n + m, all
}

func findItem(owned *fieldpath.Set, item any) (fieldpath.PathElement, bool) {
	for e := range owned.Members.All() {
		if e.Value != nil && value.Equals(*e.Value, value.NewValueInterface(item)) {
			return e, true
		}
		below, _ := owned.Children.Get(e)
		if o, ok := item.(map[string]any); ok && e.Key != nil && hasKey(o, *e.Key, below) {
			return e, true
		}
	}
	return fieldpath.PathElement{}, false
}

// hasKey reports whether an item of a list has a key. A field of the key that the item lacks
// counts as equal if below does not own it: the API server sets it, such as a port's protocol.
func hasKey(item map[string]any, key value.FieldList, below *fieldpath.Set) bool {
	for _, field := range key {
		v, found := item[field.Name]
		if found && !value.Equals(field.Value, value.NewValueInterface(v)) {
			return false
		}
		if !found && below != nil && below.Members.Has(fieldpath.FieldNameElement(field.Name)) {
			return false
		}
	}
	return true
}

// Fingerprint returns a hash of the desired object. It is the same for equal objects, whichever
// program wrote them, and does not depend on the Go types of a Kubernetes version (B-10). ""
// for a child with a Problem.
func Fingerprint(c Child) string {
	if c.Object == nil {
		return ""
	}
	text, err := json.Marshal(c.Object.Object) // sorts names
	if err != nil {
		return "" // cannot be: it was decoded from JSON
	}
	return digest(text)
}

// OwnedFingerprint returns a hash of a set of owned fields; "" for none. It is the same for the
// different orders in which the API server and Go write fieldsV1.
func OwnedFingerprint(fieldsV1 string) string {
	if fieldsV1 == "" {
		return ""
	}
	text := []byte(fieldsV1)
	var fields any
	if json.Unmarshal(text, &fields) == nil {
		if sorted, err := json.Marshal(fields); err == nil {
			text = sorted
		}
	}
	return digest(text)
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
