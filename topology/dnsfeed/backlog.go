package dnsfeed

import (
	"slices"
	"time"

	"gridproxy/topology/changes"
	"gridproxy/topology/dnsview"
)

// isLarge reports whether a Service is large. An endpoint without ports counts as one pair.
func isLarge(svc *dnsview.Names) bool {
	pairs := 0
	for i := range svc.Endpoints {
		if pairs += max(1, len(svc.Endpoints[i].Ports)); pairs > largePairs {
			return true
		}
	}
	return false
}

// split returns an update without the large Services, and those.
func (u Update) split() (others Update, large []*dnsview.Names) {
	others = u
	others.Services = nil
	for _, svc := range u.Services {
		if isLarge(svc) {
			large = append(large, svc)
		} else {
			others.Services = append(others.Services, svc)
		}
	}
	return others, large
}

// Urgent reports whether an update has more than large Services.
func (u Update) Urgent() bool {
	others, _ := u.split()
	return !others.Empty()
}

// Backlog decides what one reader is sent next, so that one Service with many endpoints does not
// make all names late. A large Service is sent after all others, in an update of its own, and then
// large Services rest. The zero value is for a reader that has nothing.
type Backlog struct {
	begun     bool              // the first update was sent
	sent      dnsview.View      // what the reader has
	first     int               // large Services that are sent without rest, as the reader is new
	namespace string            // the namespace of the large Service that was sent last
	last      map[string]string // the name of the one that was sent last, by namespace
	large     bool              // it was the last update
	rested    time.Time         // when the next large Service may be sent
}

// Next returns the next update towards a View, which then counts as sent. If that is empty and
// large Services rest, again is when to ask for the next one.
func (b *Backlog) Next(v dnsview.View, now time.Time) (u Update, again time.Time) {
	all := WholeOf(v)
	if b.begun {
		all = Between(b.sent, v)
	}
	u, large := all.split()
	b.large = false
	switch {
	case !b.begun:
		b.begun, b.first = true, len(large)
		for _, svc := range large {
			u.Later = append(u.Later, svc.Service)
			// The reader may keep something, and it is not known what.
			b.sent.Services = append(b.sent.Services, &dnsview.Names{Service: svc.Service})
		}
	case !u.Empty():
	case len(large) == 0:
		return u, time.Time{}
	case b.first == 0 && now.Before(b.rested):
		return u, b.rested
	default:
		return b.nextLarge(large), time.Time{}
	}
	b.sent = dnsview.View{Services: replace(v.Services, large, b.known), Namespaces: v.Namespaces}
	return u, time.Time{}
}

// nextLarge returns an update of one large Service. Namespaces take turns, and so do the Services
// of each: many of one tenant do not delay those of others.
func (b *Backlog) nextLarge(large []*dnsview.Names) Update {
	at := slices.IndexFunc(large, func(svc *dnsview.Names) bool { return svc.Service.Namespace > b.namespace })
	b.namespace = large[max(at, 0)].Service.Namespace
	large = slices.DeleteFunc(slices.Clone(large), func(svc *dnsview.Names) bool { return svc.Service.Namespace != b.namespace })
	at = slices.IndexFunc(large, func(svc *dnsview.Names) bool { return svc.Service.Name > b.last[b.namespace] })
	one := large[max(at, 0)]
	if b.last == nil || len(b.last) > laterMax {
		b.last = map[string]string{}
	}
	b.last[b.namespace] = one.Service.Name
	b.large, b.first = true, max(b.first-1, 0)
	update := []*dnsview.Names{one}
	b.sent.Services = replace(b.sent.Services, update, func(*dnsview.Names) []*dnsview.Names { return update })
	return Update{Services: update}
}

// known returns what the reader has of a Service, as a list of one; nil = nothing.
func (b *Backlog) known(svc *dnsview.Names) []*dnsview.Names {
	i, found := slices.BinarySearchFunc(b.sent.Services, svc, dnsview.Compare)
	if !found {
		return nil
	}
	return b.sent.Services[i : i+1]
}

func replace(list, owners []*dnsview.Names, now func(*dnsview.Names) []*dnsview.Names) []*dnsview.Names {
	return changes.Replace(list, owners, dnsview.Compare, now)
}

// Took lets large Services rest after the last update, if it was one, for its processor time.
func (b *Backlog) Took(used time.Duration, now time.Time) {
	if rested := now.Add(largeDelay * used); b.large && rested.After(b.rested) {
		b.rested = rested
	}
}
