package refusal

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// lacks says which optional matches a kernel lacks.
type lacks struct{ statistic, recent, sctp, ipvs, set bool }

// matchProbe is a rule that tests whether the kernel has a match.
type matchProbe struct {
	of   func(*lacks) *bool
	rule netfilter.Rule
}

// abilityProbes returns one rule per match to probe, and a plain rule whose refusal is not about
// a match.
func abilityProbes(o render.Options) (plain netfilter.Rule, list []matchProbe) {
	plain = netfilter.Rule{Comment: "gridproxy asks what this kernel can do", Target: netfilter.TargetReturn}
	statistic, recent, sctp, ipvs, set := plain, plain, plain, plain, plain
	statistic.Probability = netfilter.Probability(2)
	recent.Recent = netfilter.Recent{Name: netfilter.ChainScratch, Op: netfilter.RecentCheck, Seconds: 1, Reap: true}
	sctp.Proto, sctp.DstPort = netfilter.SCTP, 1
	list = []matchProbe{
		{func(l *lacks) *bool { return &l.statistic }, statistic},
		{func(l *lacks) *bool { return &l.recent }, recent},
		{func(l *lacks) *bool { return &l.sctp }, sctp},
	}
	if o.IPVS { // otherwise the probe would load a module that is not needed
		ipvs.IPVS = true
		list = append(list, matchProbe{func(l *lacks) *bool { return &l.ipvs }, ipvs})
	}
	if o.LocalDNS.IsValid() { // the set exists, if this kernel has sets: the caller of Sync creates it before
		set.MatchSet = netfilter.SetMatch{Name: netfilter.SetName(o.Family, netfilter.SetLocalDNS), Fields: "dst,dst"}
		list = append(list, matchProbe{func(l *lacks) *bool { return &l.set }, set})
	}
	return plain, list
}

// probeInput returns an input that puts rules into the scratch chain of nat.
func probeInput(list []netfilter.Rule, f netfilter.Family, n netfilter.Naming) []byte {
	chain := n.Chain(netfilter.ChainScratch)
	input := render.AppendDeclaration([]byte("*nat\n"), chain)
	for _, r := range list {
		input = render.AppendRule(input, "-A ", chain, r, f)
	}
	return append(input, "COMMIT\n*filter\n:"+chain+" - [0:0]\nCOMMIT\n"...)
}

// ask finds out what this kernel lacks. An error means that the answer is not known.
func (r *Refusals) ask(ctx context.Context, o render.Options) (lacks, error) {
	takes := func(list ...netfilter.Rule) (bool, error) {
		err := r.scratch(ctx, probeInput(list, o.Family, o.Names))
		if err != nil && refusalOf(err) == nil {
			return false, err
		}
		return err == nil, nil
	}
	plain, list := abilityProbes(o)
	all := []netfilter.Rule{plain}
	for _, p := range list {
		all = append(all, p.rule)
	}
	if is, err := takes(all...); is || err != nil {
		return lacks{}, err
	}
	if is, err := takes(plain); !is || err != nil {
		return lacks{}, errors.Join(errors.New("the kernel accepts no rule at all"), err)
	}
	var found lacks
	for _, p := range list {
		is, err := takes(p.rule)
		if err != nil {
			return lacks{}, err
		}
		*p.of(&found) = !is
	}
	return found, nil
}

// learnLacks probes the kernel once. With again it probes again if the kernel lacked something.
// The only error is a MissingMatchError: every Service needs that match. While the kernel gives
// no answer, it is assumed to have every match: a rule that it then refuses is an error of its
// own.
func (r *Refusals) learnLacks(ctx context.Context, o render.Options, again bool) error {
	if !r.asked || again && r.lacks != (lacks{}) || r.lacks.statistic || o.LocalDNS.IsValid() && !r.askedSet {
		now, err := r.ask(ctx, o)
		if err != nil {
			r.log.Debug("cannot probe which matches this kernel has", "err", err)
			return nil
		}
		if !r.told || now != r.lacks || o.LocalDNS.IsValid() && !r.askedSet {
			has := []any{"statistic", !now.statistic, "recent", !now.recent, "sctp", !now.sctp}
			if o.IPVS {
				has = append(has, "ipvs", !now.ipvs)
			}
			if o.LocalDNS.IsValid() {
				has = append(has, "set", !now.set)
			}
			r.log.Info("matches that this kernel has", has...)
		}
		r.asked, r.told, r.lacks, r.askedSet = true, true, now, o.LocalDNS.IsValid()
	}
	if r.lacks.statistic {
		return MissingMatchError{fmt.Errorf("this kernel lacks the match statistic, which spreads connections over endpoints: "+
			"load the module xt_statistic on this machine (modprobe xt_statistic), or boot a kernel that has it; %s is not served", o.Family)}
	}
	return nil
}

// MissingMatchError says that a kernel lacks a match without which no Service can be served.
type MissingMatchError struct{ error }

// optionsFor returns o for a kernel that lacks matches.
func optionsFor(o render.Options, l lacks) render.Options {
	o.WithoutRecent, o.WithoutSCTP, o.WithoutIPVS = l.recent, l.sctp, l.ipvs
	if l.set {
		o.WithoutSet, o.LocalDNS = true, netip.Addr{}
	}
	return o
}

// startProbeLimit bounds the first probe, which delays /livez. The first sync probes again.
const startProbeLimit = 10 * time.Second

// Probe asks the kernel what it lacks, before anything is written. Its error is that of learnLacks.
func (r *Refusals) Probe(ctx context.Context, o render.Options) error {
	ctx, cancel := context.WithTimeout(ctx, startProbeLimit)
	defer cancel()
	defer r.endScratch(ctx, o.Names)
	return r.learnLacks(ctx, o, false)
}
