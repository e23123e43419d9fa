package expand

import (
	"cmp"
	"fmt"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"
	"gridproxy/topology/excerpt"
)

// loss is what happens to the child of a unit without Nodes (SuperEdge deleted it immediately,
// B-14).
type loss struct {
	since time.Time // zero: it is not written yet
	due   time.Time // when the child may be deleted; zero: never
	stays string    // why it is not deleted, and what would change that
	// watched is when this controller will have watched for long enough.
	watched time.Time
	// released: its removal is allowed by name, so it needs no place in the budget.
	released bool
	// waits: its grace is over, and the budget has no place for it before due.
	waits bool
	// former is a key other than the Grid's with which Nodes carry what the child selects, or "".
	former string
	// others are all labels that it may select by such keys, which a deletion looks up live; none if
	// the unit is released.
	others map[string]string
}

// hold stops the deletion of all children of a Grid while most of its units are lost. That is more
// likely a mistake, such as a mistyped gridUniqKey, than the end of many sites. It compares them
// with those units only that have served and were there before the first loss. It begins with two
// lost units. It does not end because all but one of them were released by name.
type hold struct {
	lost, of int
	before   bool // it was on when the status was written
}

// reasonMostLost is the reason of DeletionHeld while a hold is on.
const reasonMostLost = "MostUnitsLost"

func (h hold) on() bool { return 2*h.lost > h.of && (h.lost >= 2 || h.before) }

func (a *assessment) lossOf(u *unit) *loss {
	l := &loss{since: clockOf(u.live)}
	l.released = a.releases.Allow(u.Value, l.since)
	from := cmp.Or(l.since, a.second())
	remedy := fmt.Sprintf("to delete it, add %s to the Grid's annotation %s", removal.Entry(u.Value, from), v1.AnnotationAllowRemoval)
	if u.Problem != nil {
		l.stays = "it has no usable template: " + u.Problem.Message
		return l
	}
	if u.ownership == ours && !l.released {
		l.others = u.formerLabels()
		l.former = a.formerKey(l.others)
	}
	if l.former != "" {
		l.stays = fmt.Sprintf("it selects %s=%s, which Nodes have, so gridUniqKey has changed and the site is there; %s",
			l.former, l.others[l.former], remedy)
		return l
	}
	if a.hold.on() && !l.released && !u.unserved {
		l.stays = fmt.Sprintf("%d of %d units are lost, see condition %s; %s", a.hold.lost, a.hold.of, v1.ConditionDeletionHeld, remedy)
		return l
	}
	after, never := a.graceOf(u, l.released)
	if never != "" {
		l.stays = never + "; " + remedy
		return l
	}
	l.due, l.watched = from.Add(after), a.Watched.Add(removal.OwnWatch(after))
	return l
}

// isDue reports whether the child of a lost unit may be deleted now, as far as its grace goes.
// second is now as the method second rounds it: a new loss with a grace of 0 is due then.
func (l *loss) isDue(now, second time.Time) bool {
	return !l.due.IsZero() && (!now.Before(l.due) || l.due.Equal(second) && l.since.IsZero())
}

// lossSteps returns the step that a lost unit needs now, nil for none, and when to check again,
// zero for never. Nothing else is done to the unit: a lost child is frozen.
func (u *unit) lossSteps(now, second time.Time) (Step, time.Time) {
	switch due := u.loss.due; {
	case u.deleting():
		return nil, time.Time{}
	case !u.loss.waits && u.loss.isDue(now, second):
		return Delete{
			Name: u.Name, Value: u.Value, UID: u.live.UID, ResourceVersion: u.live.ResourceVersion,
			Others: u.loss.others, Released: u.loss.released, Unserved: u.unserved,
		}, time.Time{}
	case u.loss.since.IsZero():
		return MarkLost{Name: u.Name, Value: u.Value, UID: u.live.UID, At: second}, due
	case u.loss.former != "":
		return nil, now.Add(rekeyedPeriod)
	default:
		return nil, due
	}
}

// second returns now in whole seconds, as RFC 3339 holds it, rounded up so that no grace is cut.
func (a *assessment) second() time.Time {
	now := a.Now.UTC()
	if whole := now.Truncate(time.Second); !whole.Equal(now) {
		return whole.Add(time.Second)
	}
	return now
}

// clockOf returns when the unit of a child was lost, according to the child; zero if the child
// has no readable time. Then the clock starts again.
func clockOf(l *Live) time.Time {
	at, err := time.Parse(time.RFC3339, l.Annotations.Get(v1.AnnotationLostAt))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// graceOf returns how long a child is kept after its unit was lost, or why it is never deleted;
// never is "" if after holds. The first setting counts: the child's annotation, the Grid's
// annotation, its volumes, the flag. For a released unit "never" does not count.
func (a *assessment) graceOf(u *unit, released bool) (after time.Duration, never string) {
	ofChild, onChild := u.live.Annotations.Lookup(v1.AnnotationRemovalGrace)
	ofGrid, onGrid := a.Grid.Annotations[v1.AnnotationRemovalGrace]
	for _, source := range []grace{
		annotatedGrace(ofChild, onChild, u.kind()),
		annotatedGrace(ofGrid, onGrid, string(a.Grid.Kind)),
		volumesGrace(u.live),
		flagGrace(a.Grace),
	} {
		if source.set && (source.never == "" || !released) {
			return source.after, source.never
		}
	}
	return releaseGrace, ""
}

// grace is what one of these settings says.
type grace struct {
	set   bool
	after time.Duration
	never string // why it is never; "" if it is after
}

// annotatedGrace reads the annotation of a Grid or a child, whose kind is of. An unreadable
// value means never. If found is false, nothing is set.
func annotatedGrace(text string, found bool, of string) grace {
	if !found {
		return grace{}
	}
	where := fmt.Sprintf("%s of the %s is %s", v1.AnnotationRemovalGrace, of, excerpt.Quoted(text))
	after, err := removal.ParseGrace(text)
	switch {
	case err != nil:
		return grace{set: true, never: where + ", which is not a duration such as 5m or 0s, nor never"}
	case after < 0:
		return grace{set: true, never: where}
	default:
		return grace{set: true, after: after}
	}
}

func volumesGrace(l *Live) grace {
	return grace{set: l.Volumes, never: "it has volumeClaimTemplates and no annotation " + v1.AnnotationRemovalGrace}
}

func flagGrace(after time.Duration) grace {
	if after < 0 {
		return grace{set: true, never: "--unit-removal-grace is never"}
	}
	return grace{set: true, after: after}
}
