package ipvs

import (
	"net/netip"

	"gridproxy/rules"
)

// Config is what the operator and the kernel decide about virtual servers.
type Config struct {
	Scheduler string         // as ipvsadm(8) names it; "" = rr
	Exclude   []netip.Prefix // addresses on which there is never a virtual server of ours
	Lacks     []string       // schedulers that Services ask for and the kernel does not have: Scheduler takes their place
	Retire    bool           // everything is spelled in chains: there is no virtual server at all
}

// Compiler remembers what each Service came to. The zero value is ready for use. One
// goroutine may use it.
type Compiler struct{}

// Compiled is a Ruleset in IPVS mode: what virtual servers say, and what the chains of the
// iptables backend say.
type Compiled struct {
	Pieces   []*Piece      // one for each Service, sorted by its Name; equal pointers are equal Pieces
	Residual rules.Ruleset // for the chains; a Service that did not change is the same pointer as before
}

// Piece is what one Service comes to in IPVS. It is never changed.
type Piece struct{}

// Compile splits a Ruleset.
func (c *Compiler) Compile(rs rules.Ruleset, cfg Config) Compiled { return Compiled{Residual: rs} }

// State is all Pieces together.
func (c Compiled) State() State { return State{} }
