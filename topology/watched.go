package topology

import "maps"

// A Snapshot may hold only the nodes of this node's units (Snapshot.Watched). A node that it does
// not hold is outside, so that a missing node never adds an endpoint to a unit. It could add one to
// the fallback of an Ordered list, though: without its nodes, a preferred key looks as if it had no
// endpoint.

// EqualWatched reports whether two Snapshots watch the same keys. nil, which is every Node, equals
// nothing else.
func EqualWatched(a, b map[string]bool) bool { return (a == nil) == (b == nil) && maps.Equal(a, b) }

// complete reports whether every node with this node's value of a key is known.
func (o observer) complete(key string) bool {
	return o.watched == nil || o.watched[key] || key == AnyEndpoint || o.labels[key] == ""
}

// usableKeys returns how many keys, from the first, may be used. Under policy Ordered none is
// used behind a key whose nodes are not all known.
func (o observer) usableKeys(c confinement) int {
	if c.policy == PolicyOrdered {
		for i, key := range c.keys {
			if !o.complete(key) {
				return i + 1
			}
		}
	}
	return len(c.keys)
}

// whyUnknown returns the reason to leave out an endpoint whose node the Snapshot does not hold.
func (o observer) whyUnknown() Reason {
	if o.watched != nil {
		return ReasonNotWatched
	}
	return ReasonUnknownEndpoint
}

// watchedPart is what the decision about a Service reads of Snapshot.Watched.
type watchedPart struct {
	usableKeys int
	whyUnknown Reason
}

func (o observer) watchedPart(c confinement) watchedPart {
	if len(c.keys) == 0 {
		return watchedPart{}
	}
	return watchedPart{usableKeys: o.usableKeys(c), whyUnknown: o.whyUnknown()}
}
