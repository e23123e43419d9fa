package expand

import (
	"fmt"
	"strconv"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// limit is the limit of a Grid's units, above which no child is created. A gridUniqKey such as
// kubernetes.io/hostname would otherwise fill a cluster with objects by mistake.
type limit struct {
	units    int    // of the Grid, lost ones included, since they have children
	max      int    // what units may be
	source   string // where max comes from
	withheld int    // children that are not created for that
}

// setLimit sets the limit, and withheld of the units whose children are not created. A child
// that existed is not a new one: it is created while there is room. A ServiceGrid has no limit.
func (a *assessment) setLimit() {
	if a.Grid.Kind == ServiceGrid {
		return
	}
	a.limit.units = len(a.units)
	a.limit.max, a.limit.source = a.maxUnits()
	if !a.limit.exceeded() {
		return
	}
	room := a.limit.max
	for _, u := range a.units {
		if u.live != nil {
			room--
		}
	}
	for _, u := range a.units {
		if u.live != nil || u.Problem != nil || u.nodes == 0 {
			continue
		}
		if _, replaced := a.Kept[u.Name]; room > 0 && (replaced || u.applied.UID != "") {
			room--
			continue
		}
		u.withheld = true
		a.limit.withheld++
	}
}

func (l limit) exceeded() bool { return l.source != "" && l.units > l.max }

// maxUnits returns the limit of units and its source; "" if there is no limit. The annotation
// belongs to the user of the Grid, so it only lowers what the operator allows. An unreadable one
// allows nothing.
func (a *assessment) maxUnits() (limit int, source string) {
	if a.MaxUnits > 0 {
		limit, source = a.MaxUnits, "--max-units"
	}
	text, found := a.Grid.Annotations[v1.AnnotationMaxUnits]
	if !found {
		return limit, source
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	switch {
	case err != nil || n < 0:
		return 0, fmt.Sprintf("annotation %s, which is %s and not a whole number", v1.AnnotationMaxUnits, excerpt.Quoted(text))
	case source == "" || n < limit:
		return n, "annotation " + v1.AnnotationMaxUnits
	default:
		return limit, source
	}
}

// tooManyUnits returns the conditions Ready and Degraded of a Grid with children that are not
// created.
func (a *assessment) tooManyUnits() (ready, degraded verdict) {
	l := a.limit
	text := fmt.Sprintf("%d units are more than the limit of %d (%s), so no child is created or replaced: %d units have none; existing children are "+
		"kept up to date; check gridUniqKey %q, or raise the limit", l.units, l.max, l.source, l.withheld, a.Grid.Key)
	return verdict{metav1.ConditionFalse, ReasonTooManyUnits, text}, verdict{metav1.ConditionTrue, ReasonTooManyUnits, text}
}

func (u *unit) withheldMessage() string {
	return fmt.Sprintf("%s %s is not created: the Grid has too many units, see condition %s", u.kind(), u.Name, v1.ConditionDegraded)
}
