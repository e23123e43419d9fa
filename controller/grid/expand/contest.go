package expand

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A child is contested while another client keeps changing or deleting it. Repairs are then
// limited, because without a limit two controllers would write the same object as fast as they can.

// Repairs is the history of a child's repairs: applies of what was applied before, because another
// client has changed or deleted the child since. It is kept in memory only.
type Repairs struct {
	// Recent are the times of the last repairs, oldest first, at most freeRepairs.
	Recent []time.Time
	// Contested is the number of repairs in the contest, 0 without a contest.
	Contested int
	// Rivals says who changed the child and which fields, as the function Rivals does; "" if that
	// is not known.
	Rivals string
}

// Over reports whether the history says nothing about the time now any more.
func (r Repairs) Over(now time.Time) bool {
	return len(r.Recent) == 0 || now.Sub(r.last()) >= contestPeriod
}

// After returns the history with a repair at the time now. rivals is "" if it is not known who
// made the repair necessary.
func (r Repairs) After(now time.Time, rivals string) Repairs {
	if r.Over(now) {
		r = Repairs{}
	}
	if r.Contests(now) {
		r.Contested++
	}
	if rivals != "" {
		r.Rivals = rivals
	}
	r.Recent = append(slices.Clone(r.Recent), now)
	r.Recent = r.Recent[max(len(r.Recent)-freeRepairs, 0):]
	return r
}

// Contests reports whether a repair at the time now begins a contest or belongs to one.
func (r Repairs) Contests(now time.Time) bool {
	return !r.Over(now) && (r.Contested > 0 || len(r.Recent) == freeRepairs && now.Sub(r.Recent[0]) < contestPeriod)
}

func (r Repairs) last() time.Time { return r.Recent[len(r.Recent)-1] }

// next returns when the child may be repaired again; zero, which is at any time, without a
// contest.
func (r Repairs) next() time.Time {
	if r.Contested == 0 {
		return time.Time{}
	}
	return r.last().Add(min(repairDelay<<min(r.Contested-1, 16), repairDelayMax))
}

// contested reports whether another client kept changing the unit's child until less than a
// contestPeriod ago.
func (u *unit) contested(now time.Time) bool { return u.repairs.Contested > 0 && !u.repairs.Over(now) }

// isRepair reports whether an apply would repeat what was applied last, so that another client must
// have made it necessary.
func (u *unit) isRepair() bool {
	return u.applied.Desired != "" && u.applied.Desired == u.fingerprint()
}

// repairWaits reports whether the child of a contested unit is repaired only later. What the Grid
// newly asks for is not a repair, and does not wait.
func (u *unit) repairWaits(now time.Time) bool {
	return u.contested(now) && u.isRepair() && now.Before(u.repairs.next())
}

// contestRecheck returns when the contest may need another decision: at the next repair if one
// is needed, else at its end. Zero without a contest.
func (u *unit) contestRecheck(now time.Time) time.Time {
	switch {
	case !u.contested(now):
		return time.Time{}
	case u.repairWaits(now) && u.differs():
		return u.repairs.next()
	default:
		return u.repairs.last().Add(contestPeriod)
	}
}

func (u *unit) contestMessage() string {
	who := cmp.Or(u.repairs.Rivals, "it is not known which")
	return fmt.Sprintf("another client keeps changing or deleting %s %s: %s; it is repaired after pauses of up to %s; "+
		"stop that client, or take these fields out of the Grid's template", u.kind(), u.Name, who, repairDelayMax)
}
