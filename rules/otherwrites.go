package rules

import "slices"

// OtherWrites is what a verify found that another process had written into our chains, servers or
// sets after we had written them. What was only removed does not count, nor does what existed
// before our first Sync.
type OtherWrites struct {
	Places int      // chains, virtual servers, addresses and set entries
	First  []string // the first few of them, at most MaxPlaces
}

// MaxPlaces is how many places an OtherWrites names.
const MaxPlaces = 5

// NewOtherWrites makes an OtherWrites of these places.
func NewOtherWrites(places []string) OtherWrites {
	return OtherWrites{Places: len(places), First: slices.Clone(places[:min(len(places), MaxPlaces)])}
}

// Add returns the sum of both. Its First has at most MaxPlaces places.
func (w OtherWrites) Add(more OtherWrites) OtherWrites {
	first := slices.Concat(w.First, more.First)
	return OtherWrites{Places: w.Places + more.Places, First: first[:min(len(first), MaxPlaces)]}
}
