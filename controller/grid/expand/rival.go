package expand

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"gridproxy/topology/excerpt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Owner is a field manager of an object, and the fieldsV1 that it owns.
type Owner struct {
	Manager string
	Owned   string
}

// Rivals returns which field managers had taken fields of a child from us before a repair, and
// which fields, such as "kubectl-edit took .spec.replicas", in at most 256 bytes; "" if no
// field was taken. others are the owners besides us before the repair; ours and regained are
// what we owned before and after it.
func Rivals(others []Owner, ours, regained string) string {
	lost := fieldSet(regained).Difference(fieldSet(ours))
	others = slices.SortedFunc(slices.Values(others), func(a, b Owner) int { return cmp.Compare(a.Manager, b.Manager) })
	var texts []string
	for _, o := range others {
		taken := fieldSet(o.Owned).Intersection(lost)
		if taken.Empty() {
			continue
		}
		lost = lost.Difference(taken)
		if len(texts) < rivalsMax {
			texts = append(texts, o.Manager+" took "+fieldList(taken))
		}
	}
	if !lost.Empty() && len(texts) < rivalsMax {
		texts = append(texts, "removed by an unknown client: "+fieldList(lost))
	}
	return cut(excerpt.Line(strings.Join(texts, "; ")), rivalBytesMax)
}

// fieldSet parses a fieldsV1. The set is empty if it is not readable.
func fieldSet(fieldsV1 string) *fieldpath.Set {
	s := &fieldpath.Set{}
	if len(fieldsV1) == 0 || s.FromJSON(strings.NewReader(fieldsV1)) != nil {
		return &fieldpath.Set{}
	}
	return s
}

// fieldList returns the first fields of a set, separated by commas, and "…" if there are more.
func fieldList(s *fieldpath.Set) string {
	var paths []string
	s.Iterate(func(p fieldpath.Path) { // cannot be ended early
		if len(paths) < rivalFieldsMax {
			paths = append(paths, p.String())
		}
	})
	if s.Size() > rivalFieldsMax {
		paths = append(paths, "…")
	}
	return strings.Join(paths, ", ")
}

// cut shortens a text to at most so many bytes, between characters, with "…" at its end.
func cut(text string, bytes int) string {
	const end = "…"
	if len(text) <= bytes {
		return text
	}
	n := bytes - len(end)
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + end
}
