package expand

import (
	"fmt"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pause is what the annotation paused of a Grid says. In a paused unit nothing is written but
// unit-lost-at: whether a new child is older than a loss depends on it, and with it whether
// deletions are held.
type pause struct {
	all     bool     // every unit, and everything else of the Grid
	units   []string // the values of single units
	unknown []string // what is in the annotation and is no unit's value
}

// pauseOf reads the annotation. Only "false" means that nothing is paused. What names no unit at
// all pauses every unit, so that a mistake never ends a pause.
func (a *assessment) pauseOf() pause {
	text, found := a.Grid.Annotations[v1.AnnotationPaused]
	switch text = strings.TrimSpace(text); {
	case !found || text == "false":
		return pause{}
	case text == "true":
		return pause{all: true}
	}
	var p pause
	is, seen := map[string]bool{}, map[string]bool{}
	for _, u := range a.units {
		is[u.Value] = true
	}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if seen[name] {
			continue
		}
		seen[name] = true
		switch {
		case name != "" && is[name]:
			p.units = append(p.units, name)
		default:
			p.unknown = append(p.unknown, excerpt.Quoted(name))
		}
	}
	p.all = len(p.units) == 0
	return p
}

func (a *assessment) paused(u *unit) bool { return a.pause.holds(u.Value) }

func (p pause) holds(value string) bool { return p.all || slices.Contains(p.units, value) }

const becausePaused = "while the Grid's annotation " + v1.AnnotationPaused + " is set"

// pausedPhase returns the phase of a paused unit with Nodes. What the Grid asks for does not
// count as a failure of the unit, because the Grid may be edited during the pause.
func (u *unit) pausedPhase() (phase v1.UnitPhase, reason, message string) {
	what := u.kind() + " " + u.Name
	switch {
	case u.deleting():
		return v1.UnitProgressing, ReasonPaused, what + " is being deleted, and is not created again " + becausePaused
	case u.ownership != ours:
		return v1.UnitProgressing, ReasonPaused, what + " is not created " + becausePaused
	case u.live.Stalled != "":
		return u.phase()
	case u.problem() != nil:
		return v1.UnitProgressing, ReasonPaused, fmt.Sprintf("%s is not changed %s; after that: %s", what, becausePaused, u.problem().Message)
	case u.applied.UID == u.live.UID && u.differs(): // else that is not known
		return v1.UnitProgressing, ReasonPaused, what + " does not get the last change " + becausePaused
	}
	if message := u.rollout(); message != "" {
		return v1.UnitProgressing, ReasonPaused, fmt.Sprintf("%s; %s is not changed %s", message, what, becausePaused)
	}
	return v1.UnitReady, ReasonPaused, what + " is not changed " + becausePaused
}

// progressing returns the condition Progressing. Paused units do not progress.
func (a *assessment) progressing(t tally) verdict {
	changing := t.progressing
	changing.names = slices.DeleteFunc(slices.Clone(changing.names), a.pause.holds)
	changing.n -= len(t.progressing.names) - len(changing.names)
	text := count(changing, t.all(), "progressing")
	switch paused := a.pause.all || len(a.pause.units) > 0; {
	case paused && changing.n > 0:
		return verdict{metav1.ConditionTrue, ReasonPaused, a.pauseMessage() + "; " + text}
	case paused:
		return verdict{metav1.ConditionFalse, ReasonPaused, a.pauseMessage()}
	case changing.n > 0:
		return verdict{metav1.ConditionTrue, "UnitsProgressing", text}
	default:
		return verdict{metav1.ConditionFalse, "UnitsStable", "no unit is changing"}
	}
}

func (a *assessment) pauseMessage() string {
	p := a.pause
	text := "nothing is changed " + becausePaused
	if len(p.units) > 0 {
		text = fmt.Sprintf("nothing is changed in %d of %d units %s: %s", len(p.units), len(a.units), becausePaused, listed(p.units))
	}
	if len(p.unknown) > 0 {
		text += "; no unit has the value " + listed(p.unknown)
		if p.all {
			text += ", so all are paused"
		}
		text += ": write true, false or values of units"
	}
	return text
}
