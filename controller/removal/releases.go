package removal

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Releases are the removals that a person has allowed by name, in an annotation. Each names the
// unit and the loss, so that it does not allow the removal of the same unit after a later loss.
type Releases struct{ entries []namedLoss }

type namedLoss struct {
	unit   string
	text   string // as written
	lostAt time.Time
}

// ReadReleases reads the value of an annotation: entries of the form unit@time, separated by
// commas. The time is RFC 3339, as in the annotation unit-lost-at. An entry of another form
// releases nothing, and Unmatched names it.
func ReadReleases(annotation string) Releases {
	var r Releases
	for text := range strings.SplitSeq(annotation, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		unit, at, _ := strings.Cut(text, "@")
		e := namedLoss{unit: unit, text: text}
		if lostAt, err := time.Parse(time.RFC3339, at); err == nil {
			e.lostAt = lostAt
		}
		r.entries = append(r.entries, e)
	}
	slices.SortStableFunc(r.entries, func(a, b namedLoss) int { return cmp.Compare(a.unit, b.unit) })
	return r
}

// Entry returns the text that releases a unit that was lost at a time.
func Entry(unit string, lostAt time.Time) string {
	return unit + "@" + lostAt.UTC().Format(time.RFC3339)
}

// Allow reports whether the removal of a unit after its loss at a time is released. A loss without
// a time is not.
func (r Releases) Allow(unit string, lostAt time.Time) bool {
	if lostAt.IsZero() {
		return false
	}
	i, _ := slices.BinarySearchFunc(r.entries, unit, func(e namedLoss, unit string) int { return cmp.Compare(e.unit, unit) })
	for ; i < len(r.entries) && r.entries[i].unit == unit; i++ {
		if r.entries[i].lostAt.Equal(lostAt) {
			return true
		}
	}
	return false
}

// Unmatched is an entry that releases nothing.
type Unmatched struct {
	Text string // as written
	// Entry is the entry for the unit's present loss; "" if the unit is not lost.
	Entry string
}

// Unmatched returns the entries that release no loss, unless another entry releases the loss of
// their unit. losses has the times by unit.
func (r Releases) Unmatched(losses map[string]time.Time) []Unmatched {
	var all []Unmatched
	allowed, unit := false, ""
	for i, e := range r.entries {
		lostAt := losses[e.unit]
		if i == 0 || e.unit != unit { // they are sorted by unit
			unit, allowed = e.unit, r.Allow(e.unit, lostAt)
		}
		switch {
		case lostAt.IsZero():
			all = append(all, Unmatched{Text: e.text})
		case !e.lostAt.Equal(lostAt) && !allowed:
			all = append(all, Unmatched{Text: e.text, Entry: Entry(e.unit, lostAt)})
		}
	}
	return all
}
