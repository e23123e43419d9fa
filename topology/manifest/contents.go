package manifest

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Contents is what manifests hold, the kinds included that Objects does not have.
type Contents struct {
	Objects
	Further []Raw                    // of the kinds that were asked for, in the order of the files
	Skipped map[schema.GroupKind]int // how many objects of other kinds there are
}

// ReadWith does what Read does, and also returns the objects of further kinds.
func ReadWith(paths []string, stdin io.Reader, further ...schema.GroupVersionKind) (Contents, []string, error) {
	r := NewReader(paths, stdin)
	r.options.further = further
	return r.contents()
}

// ReadWithNames does what ReadWith does, with what DNS reads instead of further kinds.
func ReadWithNames(paths []string, stdin io.Reader) (Contents, []string, error) {
	return NewReader(paths, stdin).WithNames().contents()
}

func (r *Reader) contents() (Contents, []string, error) {
	objects, warnings, err := r.Read()
	c := Contents{Objects: objects, Skipped: map[schema.GroupKind]int{}}
	if err != nil {
		return c, warnings, err
	}
	for _, f := range r.last.files {
		c.Further = append(c.Further, f.parsed.raw...)
		for kind, n := range f.parsed.skipped {
			c.Skipped[kind] += n
		}
	}
	return c, warnings, nil
}
