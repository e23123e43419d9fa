package topology

import "slices"

// Ordered fallback: under PolicyOrdered a Service uses the endpoints of one key, the key in use.
// The keys behind it in the list are its fallback.

// fallBack chooses the key in use: the first key with a ready endpoint, else the first with one
// that is terminating but still serves; "" = none. The verdict returns why an endpoint is left
// out under that key. The choice comes before readiness and traffic policies, so that every
// policy sees the same unit.
func (o observer) fallBack(keys []string, all []candidate) (string, verdict) {
	for _, isUsable := range []func(candidate) bool{isReady, isDraining} {
		for _, key := range keys {
			if slices.ContainsFunc(all, func(e candidate) bool { return isUsable(e) && o.outsideKey(key, e) == "" }) {
				return key, func(e candidate) Reason { return o.notInUse(keys, key, e) }
			}
		}
	}
	return "", func(e candidate) Reason { return o.notInUse(keys, "", e) }
}

// outsideKey returns why one entry of an Ordered list does not lead to an endpoint; "" = it
// does.
func (o observer) outsideKey(key string, e candidate) Reason {
	if key == AnyEndpoint || e.exempt {
		return ""
	}
	return o.outside([]string{key}, e)
}

// notInUse returns why the key in use does not lead to an endpoint; "" = it does. Key "" leads
// to none.
func (o observer) notInUse(keys []string, inUse string, e candidate) Reason {
	if inUse != "" && o.outsideKey(inUse, e) == "" {
		return ""
	}
	for _, key := range keys {
		if o.outsideKey(key, e) == "" {
			return ReasonPreferredKey
		}
	}
	return o.outside(keys, e)
}
