package grid

import (
	"maps"
	"slices"
	"time"

	"gridproxy/controller/grid/expand"
	"gridproxy/controller/retry"
)

// retries decide when to try again the children of one Grid that the API server has refused: no
// event says that a port, a quota or a right is available. Of the children that are refused with
// one text only one is tried, until it is taken.
type retries struct {
	texts  map[string]string      // by child; without the child that is being tried
	groups map[string]*retryGroup // by text
}

// retryGroup holds what is known of the children that were refused with one text.
type retryGroup struct {
	tried     string // the child that was tried last
	trying    bool   // the API server has not answered this try yet
	next      time.Time
	pause     time.Duration
	rights    bool // the authorizer refused
	forbidden bool // a change of anything in the Grid may end it
}

// refuse notes that a child was refused with a text. If it was tried with another one, that
// text may be new each time, as with the number of a request, so the pauses go on to grow.
// forbidden and rights say why: see retryGroup.
func (r *retries) refuse(child, text string, forbidden, rights bool, now time.Time) {
	pause := r.endTry(child)
	r.texts[child] = text
	if r.groups[text] == nil {
		g := &retryGroup{forbidden: forbidden, rights: rights}
		g.wait(pause, now)
		r.groups[text] = g
	}
}

// endTry notes that a child was refused, and returns the longest pause that began when it was
// tried; 0 if it was not.
func (r *retries) endTry(child string) (longest time.Duration) {
	for _, g := range r.groups {
		if g.trying && g.tried == child {
			g.trying, longest = false, max(longest, g.pause)
		}
	}
	return longest
}

// wait begins a pause at now, of this length within the bounds of the group.
func (g *retryGroup) wait(pause time.Duration, now time.Time) {
	first, last := refusedDelay, refusedDelayMax
	if g.rights {
		first, last = rightsDelay, rightsDelayMax
	}
	g.pause = min(max(pause, first), last)
	g.next = now.Add(g.pause)
}

// endPauses ends the pauses of the refusals that a change of the Grid may end.
func (r *retries) endPauses() {
	for _, g := range r.groups {
		if g.forbidden {
			g.pause, g.next = 0, time.Time{}
		}
	}
}

// due returns the children to try now, one for each text, and doubles their pause. blocked is
// expand.Plan's: it forgets a child that is not in it, and passes over those that are false.
func (r *retries) due(blocked map[string]bool, now time.Time) (children []string) {
	maps.DeleteFunc(r.texts, func(child, _ string) bool { _, found := blocked[child]; return !found })
	for text, g := range r.groups {
		if now.Before(g.next) {
			continue
		}
		same := r.children(text)
		if len(same) == 0 { // all are refused with other texts by now, or gone
			delete(r.groups, text)
			continue
		}
		same = slices.DeleteFunc(same, func(child string) bool { return !blocked[child] })
		if len(same) == 0 {
			g.wait(g.pause, now)
			continue
		}
		g.wait(2*g.pause, now)
		g.tried, g.trying = after(g.tried, same), true
		delete(r.texts, g.tried)
		children = append(children, g.tried)
	}
	return children
}

func (r *retries) children(text string) (children []string) {
	for child, has := range r.texts {
		if has == text {
			children = append(children, child)
		}
	}
	slices.Sort(children)
	return children
}

// after returns the first of sorted children behind last, or the first of all; one must exist.
func after(last string, children []string) string {
	i, found := slices.BinarySearch(children, last)
	if found {
		i++
	}
	return children[i%len(children)]
}

// take notes that the API server has accepted a child, and returns the others that were refused
// with the same text. All of them are forgotten.
func (r *retries) take(child string) (others []string) {
	var taken []string
	for text, g := range r.groups {
		if r.texts[child] == text || g.trying && g.tried == child {
			taken = append(taken, text)
			delete(r.groups, text)
		}
	}
	delete(r.texts, child)
	for other, text := range r.texts {
		if slices.Contains(taken, text) {
			others = append(others, other)
			delete(r.texts, other)
		}
	}
	return others
}

// wait returns how long the shortest pause still lasts, at least 1 ns; 0 if nothing is refused.
func (r *retries) wait(now time.Time) (shortest time.Duration) {
	for _, g := range r.groups {
		shortest = retry.Earlier(shortest, max(g.next.Sub(now), time.Nanosecond))
	}
	return shortest
}

// see notes the version of a Grid. If it differs from the one before, it calls endPauses.
func (r *remembered) see(version string) {
	if r.version != version {
		r.retries.endPauses()
	}
	r.version = version
}

// retry forgets the refusals of the children that are to be tried now or are no longer wanted, and
// reports whether any is to be tried. blocked is expand.Plan's.
func (r *remembered) retry(blocked map[string]bool, now time.Time) bool {
	due := r.retries.due(blocked, now)
	maps.DeleteFunc(r.applied, func(child string, a expand.Applied) bool {
		_, wanted := blocked[child]
		return a.Refused != nil && !wanted || slices.Contains(due, child)
	})
	return len(due) > 0
}
