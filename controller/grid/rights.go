package grid

import "time"

// firstDenial is the pause after the authorizer has first refused. It doubles up to lastPause.
const firstDenial = time.Second

// rights decide when to retry what the authorizer has refused. There is no event when the
// controller gets its rights back.
type rights struct {
	next  time.Time // zero: nothing is refused
	pause time.Duration
}

// deny notes a refusal. What is refused in the same attempt is retried at the same time.
func (r *rights) deny(now time.Time) {
	if r.next.After(now) {
		return
	}
	r.pause = min(max(2*r.pause, firstDenial), lastPause)
	r.next = now.Add(r.pause)
}

// due reports, once, whether the pause is over.
func (r *rights) due(now time.Time) bool {
	if r.next.IsZero() || now.Before(r.next) {
		return false
	}
	r.next = time.Time{}
	return true
}

// wait is how long the pause still lasts; 0 if nothing is refused.
func (r *rights) wait(now time.Time) time.Duration {
	if r.next.IsZero() {
		r.pause = 0
		return 0
	}
	return max(r.next.Sub(now), time.Nanosecond)
}

// forbid notes that an apply of a child was forbidden, by the authorizer or by an admission check
// of the child.
func (r *remembered) forbid(child string, lacksRight bool, now time.Time) {
	r.forbidden[child] = lacksRight
	if lacksRight {
		r.rights.deny(now)
	}
}

// see notes the version of a Grid. It forgets refusals that another version may end, and those of
// the authorizer when it is time to retry.
func (r *remembered) see(version string, now time.Time) {
	changed, due := r.version != version, r.rights.due(now)
	r.version = version
	for child, lacksRight := range r.forbidden {
		if changed || due && lacksRight {
			delete(r.applied, child)
			delete(r.forbidden, child)
		}
	}
}
