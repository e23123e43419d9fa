package ipvs

import (
	"slices"

	"gridproxy/rules"
)

// OtherWrites returns what another process wrote into objects of ours, as the last Sync found
// it. Tables reports what was written into chains.
func (b *Backend) OtherWrites() rules.OtherWrites { return b.otherWrites }

// findOtherWrites compares what was read with what was expected, which is what we wrote. It reports
// virtual servers, real servers, addresses and entries of ours that are new or different. It does
// not report what is missing, nor servers of other programs, which are foreign.
func findOtherWrites(expected, fresh kernelState, foreign func(ServerKey) bool) rules.OtherWrites {
	var places []string
	for key, s := range fresh.Servers {
		if before, known := expected.Servers[key]; !foreign(key) && (!known || before != s) {
			places = append(places, "virtual server "+key.String())
		}
	}
	for key, d := range fresh.Destinations {
		before, known := expected.Destinations[key]
		raised := d.Weight > before.Weight || d.Other != before.Other
		if !foreign(key.Server) && (!known || raised) {
			places = append(places, "real server "+key.Addr.String()+" of "+key.Server.String())
		}
	}
	for a := range fresh.Addresses {
		if _, known := expected.Addresses[a]; !known {
			places = append(places, "address "+a.String())
		}
	}
	for e := range fresh.Entries {
		if _, known := expected.Entries[e]; !known {
			places = append(places, "entry "+e.String()+" of set "+e.Set)
		}
	}
	slices.Sort(places)
	return rules.NewOtherWrites(places)
}
