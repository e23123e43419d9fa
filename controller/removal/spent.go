package removal

import (
	"slices"
	"time"
)

// Window is the time over which removals are counted.
const Window = time.Hour

// spentMax bounds a list of Spent: one entry for each minute of a Window, and one for the minute
// that has begun.
const spentMax = 61

// Spent is how many units were removed in one minute.
type Spent struct {
	At    time.Time // the end of that minute
	Count int
}

// Recent returns the entries that still count at a time, sorted by time. An entry with a time
// in the future, which a clock that was wrong has left, counts until its Window is over.
func Recent(spent []Spent, now time.Time) []Spent {
	var recent []Spent
	for _, s := range spent {
		if s.Count > 0 && s.At.Add(Window).After(now) {
			recent = append(recent, s)
		}
	}
	slices.SortStableFunc(recent, func(a, b Spent) int { return a.At.Compare(b.At) })
	return recent
}

// Spend returns the entries that still count, with n removals more.
func Spend(spent []Spent, n int, now time.Time) []Spent {
	recent := Recent(spent, now)
	if n <= 0 {
		return recent
	}
	at := now.UTC().Truncate(time.Minute).Add(time.Minute)
	recent = Recent(append(recent, Spent{At: at, Count: n}), now)
	var merged []Spent
	for _, s := range recent {
		if last := len(merged) - 1; last >= 0 && (merged[last].At.Equal(s.At) || len(merged) == spentMax) {
			merged[last] = Spent{At: s.At, Count: merged[last].Count + s.Count}
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// Left returns how many units may still be removed now, if allowed is the number for a Window.
// If left is 0, next is when the next unit may be removed; zero if that is never.
func Left(allowed int, spent []Spent, now time.Time) (left int, next time.Time) {
	recent := Recent(spent, now)
	left = allowed
	for _, s := range recent {
		left -= s.Count
	}
	if left > 0 || allowed <= 0 {
		return max(left, 0), time.Time{}
	}
	for _, s := range recent { // the oldest end first
		left += s.Count
		next = s.At.Add(Window)
		if left > 0 {
			break
		}
	}
	return 0, next
}
