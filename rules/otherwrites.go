package rules

import "slices"

// OtherWrites is what a verify found that another process had written into what is ours, after
// we had written it: not what was only removed, and not what was there before our first Sync.
type OtherWrites struct {
	Places int      // chains, virtual servers, addresses and set entries
	First  []string // the first few of them, at most MaxPlaces
}

// MaxPlaces is how many places an OtherWrites names.
const MaxPlaces = 5

// NewOtherWrites is about these places.
func NewOtherWrites(places []string) OtherWrites {
	return OtherWrites{Places: len(places), First: slices.Clone(places[:min(len(places), MaxPlaces)])}
}

// Add is both.
func (w OtherWrites) Add(more OtherWrites) OtherWrites {
	first := slices.Concat(w.First, more.First)
	return OtherWrites{Places: w.Places + more.Places, First: first[:min(len(first), MaxPlaces)]}
}
