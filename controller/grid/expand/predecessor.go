package expand

import (
	"encoding/json"
	"reflect"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// superEdge is the field manager of SuperEdge's controller, unless its program was renamed.
const superEdge = "application-grid-controller"

// Predecessor is a field manager that kept a child before this controller, by updates instead of
// applies. While it owns fields they cannot be removed by an apply, so they are taken over.
type Predecessor struct {
	Manager string
	Owned   string // fieldsV1
}

// IsPredecessor reports whether a field manager that owns the fields by updates has managed a child
// as SuperEdge's controller does. It owns both labels of children, because it created the child, or
// it has that controller's name, because it updated a child of ours. A user who hands an object to
// a Grid by the selector label alone is not a predecessor, and keeps the fields.
func IsPredecessor(manager, fieldsV1 string) bool {
	if manager == superEdge {
		return true
	}
	var owned struct {
		Metadata struct {
			Labels map[string]json.RawMessage `json:"f:labels"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal([]byte(fieldsV1), &owned); err != nil {
		return false
	}
	labels := owned.Metadata.Labels
	return labels["f:"+v1.LabelSelector] != nil && labels["f:"+v1.LabelKey] != nil
}

// unmarked reports whether the child exists and is as SuperEdge made it, without the annotation
// of its value. Its nodeSelector has the value. It gets the annotation when its Pod template
// changes, because any change of a Deployment's annotations creates a new generation.
func (l *Live) unmarked() bool {
	return l != nil && l.TemplateHash != "" && l.Annotations.Get(v1.AnnotationValue) == ""
}

// WithTemplateHash returns a copy of a child, with SuperEdge's label in its Pod template. Apply
// it if that leaves the template of the live child unchanged: see SameTemplate. The label is
// never computed (B-10).
func WithTemplateHash(child *unstructured.Unstructured, hash string) *unstructured.Unstructured {
	o := child.DeepCopy()
	if pod := gridspec.ObjectAt(o.Object, "spec", "template"); pod != nil {
		own(own(pod, "metadata"), "labels")[v1.LabelTemplateHash] = hash
	}
	return o
}

// SameTemplate reports whether two versions of a child, both as the API server has them, have the
// same Pod template.
func SameTemplate(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(gridspec.ObjectAt(a.Object, "spec", "template"), gridspec.ObjectAt(b.Object, "spec", "template"))
}
