package health

import (
	"time"

	"gridproxy/rules"
)

// Checks are what the endpoints answer at one moment, and what these answers depend on.
type Checks struct {
	At          time.Time
	Live, Ready bool // as /livez and /readyz
	Eligible    bool // load balancers may send to this node
	Families    map[rules.Family]FamilyStatus
	Pending     time.Time     // the oldest change of a served family that waits to be written; zero = none waits
	Progress    time.Time     // the last step of the sync in progress; zero = none is in progress
	Hangs       bool          // the sync in progress makes no progress any more, as for /livez
	Timeout     time.Duration // a change that waits longer makes its family unhealthy
}

// Checks judges as the endpoints do. No lock is taken that is held for longer than an assignment,
// so it also answers while a sync hangs. Safe for concurrent use.
func (s *Server) Checks() Checks {
	j := s.now()
	c := Checks{
		At: j.at, Live: s.alive(j), Ready: s.ready.Load(), Eligible: !s.ineligible.Load(),
		Families: j.families, Progress: s.config.Progress(), Timeout: s.config.Timeout,
	}
	for f := range j.families {
		if p := s.config.Pending(f); !p.IsZero() && (c.Pending.IsZero() || p.Before(c.Pending)) {
			c.Pending = p
		}
	}
	c.Hangs = !c.Progress.IsZero() && !s.config.progressing(j.at)
	return c
}
