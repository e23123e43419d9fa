package manifest

import (
	"fmt"

	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// place is the position of an object in the manifests, and its identity as far as it is known.
type place struct {
	file                  string
	document              int    // from 1; documents without content do not count
	items                 string // ", item 2" for each List around it
	kind, namespace, name string
}

// String returns "FILE: document N (Kind namespace/name)", without what is not known.
func (p place) String() string {
	text := fmt.Sprintf("%s: document %d%s", excerpt.Line(p.file), p.document, p.items)
	p.kind, p.namespace, p.name = excerpt.Of(p.kind), excerpt.Of(p.namespace), excerpt.Of(p.name)
	switch {
	case p.kind == "":
		return text
	case p.name == "":
		return fmt.Sprintf("%s (%s)", text, p.kind)
	case p.namespace == "":
		return fmt.Sprintf("%s (%s %s)", text, p.kind, p.name)
	default:
		return fmt.Sprintf("%s (%s %s/%s)", text, p.kind, p.namespace, p.name)
	}
}

func (p place) item(i int) place {
	p.items += fmt.Sprintf(", item %d", i+1)
	p.kind, p.namespace, p.name = "", "", ""
	return p
}

// findings are the errors and warnings about one object, in the order of its fields.
type findings struct {
	place    place
	errs     []error
	warnings []string
}

func (f *findings) wrong(path *field.Path, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %s: %s", f.place, excerpt.Of(path.String()), fmt.Sprintf(format, args...)))
}

func (f *findings) warn(path *field.Path, text string) {
	f.warnings = append(f.warnings, fmt.Sprintf("%s: %s: %s", f.place, path, text))
}
