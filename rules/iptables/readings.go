package iptables

import "time"

// A read-back that takes longer than slowReading is followed by a pause of readingPause times its
// duration, because changes wait for it. iptables-nft-save 1.8.9 takes half a minute for 40,000
// chains, which one tenant's Service may have.
const (
	slowReading  = 5 * time.Second
	readingPause = 10
)

// readings are the times of the last read-back, successful or not. The zero value is none.
type readings struct {
	ended time.Time
	took  time.Duration
}

// pause reports whether a verify must skip the read-back and trust what was written last.
func (r readings) pause(now time.Time) bool {
	return r.took > slowReading && now.Before(r.ended.Add(readingPause*r.took))
}
