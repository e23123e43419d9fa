package ipvs

import (
	"slices"

	"gridproxy/rules"
)

// OtherWrites is what another process had written into what belongs to our virtual servers, as
// the last Sync found it. Its Tables report what was written into chains.
func (b *Backend) OtherWrites() rules.OtherWrites { return b.otherWrites }

// findOtherWrites is what the kernel holds and was not believed to hold, or holds in another way: real
// servers of ours, addresses of Link, and entries of our sets. What is missing is no evidence, and
// servers of others, which are foreign, are their own business. believed is what we had
// written.
func findOtherWrites(believed, fresh kernelState, foreign func(ServerKey) bool) rules.OtherWrites {
	var places []string
	for key, s := range fresh.Servers {
		if before, known := believed.Servers[key]; !foreign(key) && (!known || before != s) {
			places = append(places, "virtual server "+key.String())
		}
	}
	for key, d := range fresh.Destinations {
		before, known := believed.Destinations[key]
		raised := d.Weight > before.Weight || d.Other != before.Other
		if !foreign(key.Server) && (!known || raised) {
			places = append(places, "real server "+key.Addr.String()+" of "+key.Server.String())
		}
	}
	for a := range fresh.Addresses {
		if _, known := believed.Addresses[a]; !known {
			places = append(places, "address "+a.String())
		}
	}
	for e := range fresh.Entries {
		if _, known := believed.Entries[e]; !known {
			places = append(places, "entry "+e.String()+" of set "+e.Set)
		}
	}
	slices.Sort(places)
	return rules.NewOtherWrites(places)
}
