package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridproxy/topology"
	"gridproxy/topology/documents"
	"gridproxy/topology/object"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// parsed is the content of one manifest file, each object checked separately.
type parsed struct {
	trim     *object.Trimmer
	options  options
	services []located[corev1.Service]
	slices   []located[topology.Slice]
	nodes    []located[corev1.Node]
	raw      []Raw // of further kinds

	namespaces, grids []located[metav1.PartialObjectMetadata] // with names alone

	skipped  map[schema.GroupKind]int // how many objects of other kinds there are
	unread   []string                 // warnings about Endpoints, unless an EndpointSlice names an API proxy
	warnings []string
	errs     []error
}

// options say what to read besides what rules are made of.
type options struct {
	names   bool                      // what DNS reads
	further []schema.GroupVersionKind // whose objects are kept as they are written
}

// located is an object and its place in the manifests. An object that is left out still has its
// name.
type located[T any] struct {
	place   place
	object  *T
	leftOut bool
}

// parse reads the text of one manifest file. Errors are in the result. It is pure.
func (o options) parse(file string, text []byte) parsed {
	p := parsed{trim: &object.Trimmer{Names: o.names}, options: o, skipped: map[schema.GroupKind]int{}}
	if documents.IsEmpty(text) {
		p.errs = []error{fmt.Errorf("%s: is empty, perhaps half written; remove the file to remove its objects", file)}
		return p
	}
	all, errs := documents.Read(file, text)
	p.errs = append(p.errs, errs...)
	for i, d := range all {
		if d != nil {
			p.add(place{file: file, document: i + 1}, d, header{})
		}
	}
	p.errs, p.warnings = printableErrors(p.errs), printable(p.warnings)
	return p
}

// header is what says how to read an object.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type identity struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// The kinds that are read, and the lists of them.
var (
	usedKinds = [...]schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Service"),
		corev1.SchemeGroupVersion.WithKind("Node"),
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
	}
	plainList     = corev1.SchemeGroupVersion.WithKind("List")
	endpointsKind = corev1.SchemeGroupVersion.WithKind("Endpoints")

	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
	gridKind      = schema.GroupVersionKind{Group: "superedge.io", Version: "v1", Kind: "StatefulSetGrid"}
)

// kinds returns the kinds of the objects from which something is read.
func (o options) kinds() []schema.GroupVersionKind {
	if o.names {
		return slices.Concat(usedKinds[:], []schema.GroupVersionKind{namespaceKind, gridKind}, o.further)
	}
	return slices.Concat(usedKinds[:], o.further)
}

// add takes one object into p, or the items of a list, with the errors and warnings about them.
// unsaid is the header of the list around the object, for what its own lacks.
func (p *parsed) add(at place, text []byte, unsaid header) {
	f := &findings{place: at}
	defer func() {
		p.errs = append(p.errs, f.errs...)
		p.warnings = append(p.warnings, f.warnings...)
	}()
	if text[0] != '{' {
		f.errs = append(f.errs, fmt.Errorf("%s: is not an object; write its apiVersion, kind and metadata", at))
		return
	}
	h := unsaid
	if !decode(f, text, &h) || !h.complete(f) {
		return
	}
	f.place.kind = h.Kind
	kind, isList, used := h.match(p.options.kinds())
	switch {
	case !used:
		p.skip(f.place, h, text)
	case schema.FromAPIVersionAndKind(h.APIVersion, "").GroupVersion() != kind.GroupVersion():
		f.wrong(field.NewPath("apiVersion"), "is %s; write %s, the only version that is read", h.APIVersion, kind.GroupVersion())
	case isList:
		p.addItems(f, text, kind)
	case kind.Kind == "Service":
		p.services = appendObject(p.services, f, text, checkService, p.trim.Service)
	case kind.Kind == "EndpointSlice":
		p.slices = appendObject(p.slices, f, text, checkSlice, p.trim.Slice)
	case kind.Kind == "Node":
		p.nodes = appendObject(p.nodes, f, text, checkNode, p.trim.Node)
	case p.options.names && kind == namespaceKind:
		p.namespaces = appendObject(p.namespaces, f, text, checkNamespace, p.trim.Identity)
	case p.options.names && kind == gridKind:
		p.grids = appendObject(p.grids, f, text, checkGrid, p.trim.Identity)
	default:
		f.nameFrom(text)
		p.raw = append(p.raw, Raw{Place: f.place.String(), APIVersion: h.APIVersion, Kind: h.Kind, JSON: text, place: f.place})
	}
}

// skip counts an object that is not used, or the items of a list of such objects.
func (p *parsed) skip(at place, h header, text []byte) {
	kind := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind).GroupKind()
	items, places := []json.RawMessage{text}, func(int) place { return at }
	if item, isList := strings.CutSuffix(kind.Kind, "List"); isList {
		var list struct {
			Items *[]json.RawMessage `json:"items"`
		}
		if json.Unmarshal(text, &list) == nil && list.Items != nil {
			kind.Kind, items, places = item, *list.Items, at.item
		}
	}
	if len(items) > 0 {
		p.skipped[kind] += len(items)
	}
	if kind == endpointsKind.GroupKind() {
		for i, item := range items {
			p.skipEndpoints(places(i), item)
		}
	}
}

// skipEndpoints keeps the warning about Endpoints that name an API proxy.
func (p *parsed) skipEndpoints(at place, text []byte) {
	var o metav1.PartialObjectMetadata
	if json.Unmarshal(text, &o) != nil {
		return
	}
	if warning := topology.WarnOfAPIProxy(&o); warning != "" {
		p.unread = append(p.unread, at.String()+": "+warning)
	}
}

func (h header) complete(f *findings) bool {
	if h.APIVersion == "" {
		f.wrong(field.NewPath("apiVersion"), "is missing, the object is perhaps half written; write one such as v1")
	}
	if h.Kind == "" {
		f.wrong(field.NewPath("kind"), "is missing, the object is perhaps half written; write one such as Service")
	}
	return len(f.errs) == 0
}

// match returns the kind that is meant, whether the object is a list, and whether it is read at
// all. The same kind of another group is another kind (Knative has Services too); only the core
// group's is a slip of the pen.
func (h header) match(kinds []schema.GroupVersionKind) (kind schema.GroupVersionKind, isList, used bool) {
	group := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind).Group
	item, isList := strings.CutSuffix(h.Kind, "List")
	for _, k := range kinds {
		if k.Kind == item && (group == k.Group || group == corev1.GroupName) {
			return k, isList, true
		}
	}
	return plainList, true, h.Kind == plainList.Kind && group == plainList.Group
}

func (p *parsed) addItems(f *findings, text []byte, kind schema.GroupVersionKind) {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if !decode(f, text, &list) {
		return
	}
	var unsaid header
	if kind != plainList {
		unsaid.APIVersion, unsaid.Kind = kind.ToAPIVersionAndKind()
	}
	for i, item := range list.Items {
		p.add(f.place.item(i), item, unsaid)
	}
}

// appendObject decodes an object, gives it the API server's defaults, checks it, and appends of
// it what a Cluster would keep. One that cannot be decoded is only an error in f. The check
// returns false for an object that is to be left out.
func appendObject[D, T any, P interface {
	*D
	metav1.Object
}](all []located[T], f *findings, text []byte, check func(*findings, *D) bool, trim func(*D) *T) []located[T] {
	o := P(new(D))
	f.nameFrom(text)
	if !decode(f, text, o) {
		return all
	}
	keep := check(f, (*D)(o))
	if o.GetUID() == "" {
		o.SetUID(types.UID("manifest:" + f.place.kind + ":" + o.GetNamespace() + "/" + o.GetName()))
	}
	return append(all, located[T]{place: f.place, object: trim(o), leftOut: !keep})
}

// nameFrom takes the object's identity from its text into f.place, as far as it can be read.
func (f *findings) nameFrom(text []byte) {
	var named struct {
		Metadata identity `json:"metadata"`
	}
	if json.Unmarshal(text, &named) == nil {
		f.place.namespace, f.place.name = named.Metadata.Namespace, named.Metadata.Name
	}
}

// assemble puts files together and checks the objects against each other. An error joins what
// is wrong, and then there are no Objects.
func assemble(files []parsed) (Objects, []string, error) {
	var services, slices, nodes int
	for _, p := range files {
		services, slices, nodes = services+len(p.services), slices+len(p.slices), nodes+len(p.nodes)
	}
	whole := parsed{
		services: make([]located[corev1.Service], 0, services),
		slices:   make([]located[topology.Slice], 0, slices),
		nodes:    make([]located[corev1.Node], 0, nodes),
	}
	for _, p := range files {
		whole.services = append(whole.services, p.services...)
		whole.slices = append(whole.slices, p.slices...)
		whole.nodes = append(whole.nodes, p.nodes...)
		whole.raw = append(whole.raw, p.raw...)
		whole.namespaces = append(whole.namespaces, p.namespaces...)
		whole.grids = append(whole.grids, p.grids...)
		whole.options.names = whole.options.names || p.options.names
		whole.warnings = append(whole.warnings, p.warnings...)
		whole.errs = append(whole.errs, p.errs...)
	}
	whole.errs = append(whole.errs, printableErrors(conflicts(whole))...)
	if len(whole.errs) > 0 {
		return Objects{}, whole.warnings, errors.Join(whole.errs...)
	}
	objects := Objects{
		Services: kept[corev1.Service](whole.services),
		Slices:   kept[topology.Slice](whole.slices),
		Nodes:    kept[corev1.Node](whole.nodes),
	}
	if len(topology.APIProxies(objects.Slices)) == 0 {
		for _, p := range files {
			whole.warnings = append(whole.warnings, printable(p.unread)...)
		}
	}
	if whole.options.names {
		objects.addNames(kept[metav1.PartialObjectMetadata](whole.namespaces), kept[metav1.PartialObjectMetadata](whole.grids))
	}
	return objects, whole.warnings, nil
}

func kept[T any, P object.Pointer[T]](all []located[T]) []*T {
	objects := make([]*T, 0, len(all))
	for _, l := range all {
		if !l.leftOut {
			objects = append(objects, l.object)
		}
	}
	slices.SortFunc(objects, func(a, b *T) int { return topology.CompareObjects(P(a), P(b)) })
	return objects
}
