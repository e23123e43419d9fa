package grid

import (
	"slices"
	"time"
)

// The first and the last pause before a refused child is tried again; each pause is twice as long
// as the one before. Missing rights concern everything that the controller does, and an API server
// that has just started refuses everything, so these are tried sooner.
const (
	firstRefusedPause = 10 * time.Second
	lastRefusedPause  = 10 * time.Minute
	firstRightsPause  = time.Second
	lastRightsPause   = 30 * time.Second
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
	next      time.Time
	pause     time.Duration
	rights    bool // the authorizer refused
	forbidden bool // a change of anything in the Grid may end it
}

// refuse notes that a child was refused with a text. If it was tried with another one, that text may
// be new each time, as with the number of a request, so the pauses go on to grow.
func (r *retries) refuse(child, text string, forbidden, rights bool, now time.Time) {
	r.texts[child] = text
	if r.groups[text] == nil {
		g := &retryGroup{forbidden: forbidden, rights: rights, pause: r.pauseOf(child)}
		if g.next = now.Add(g.pause); g.pause == 0 {
			g.wait(now)
		}
		r.groups[text] = g
	}
}

// pauseOf returns the longest pause that began when the child was tried; 0 if it was not.
func (r *retries) pauseOf(child string) (longest time.Duration) {
	for _, g := range r.groups {
		if g.tried == child {
			longest = max(longest, g.pause)
		}
	}
	return longest
}

// wait begins the next pause.
func (g *retryGroup) wait(now time.Time) {
	first, last := firstRefusedPause, lastRefusedPause
	if g.rights {
		first, last = firstRightsPause, lastRightsPause
	}
	g.pause = min(max(2*g.pause, first), last)
	g.next = now.Add(g.pause)
}

// due returns the children to try now. A change of the Grid ends the pauses of refusals that it may
// end.
func (r *retries) due(changed bool, now time.Time) (children []string) {
	for text, g := range r.groups {
		switch {
		case changed && g.forbidden:
			g.pause = 0
		case now.Before(g.next):
			continue
		}
		child := r.after(text, g.tried)
		if child == "" { // all are refused with other texts by now
			delete(r.groups, text)
			continue
		}
		delete(r.texts, child)
		g.tried = child
		g.wait(now)
		children = append(children, child)
	}
	return children
}

// after returns the next child by name with a text, and the first one after the last; "" if there
// is none.
func (r *retries) after(text, last string) string {
	var children []string
	for child, has := range r.texts {
		if has == text {
			children = append(children, child)
		}
	}
	if len(children) == 0 {
		return ""
	}
	slices.Sort(children)
	if i, found := slices.BinarySearch(children, last); i < len(children) && !found {
		return children[i]
	} else if found && i+1 < len(children) {
		return children[i+1]
	}
	return children[0]
}

// take notes that the API server has taken a child, and returns the others that were refused as it
// was.
func (r *retries) take(child string) (others []string) {
	var taken []string
	for text, g := range r.groups {
		if r.texts[child] == text || g.tried == child {
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

// wait returns how long the shortest pause still lasts; 0 if nothing is refused.
func (r *retries) wait(now time.Time) (shortest time.Duration) {
	for _, g := range r.groups {
		shortest = earliest(shortest, max(g.next.Sub(now), time.Nanosecond))
	}
	return shortest
}

// see notes the version of a Grid, and forgets the refusals of the children to try now.
func (r *remembered) see(version string, now time.Time) {
	changed := r.version != version
	r.version = version
	for _, child := range r.retries.due(changed, now) {
		delete(r.applied, child)
	}
}
