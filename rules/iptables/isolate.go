package iptables

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// How many restores a sync spends on Services that the kernel refuses.
const (
	maxRestores   = 20
	writeRestores = 4 // of them: two refused ones, removing the scratch chains, writing the rest
	retryAttempts = 4 // for each of the refused Services alone, when all together are refused

	// searchAttempts remain after a probe of the kernel. They halve 8,000 Services down to one.
	searchAttempts = maxRestores - writeRestores - 1
)

// kernelLimits is what a familySyncer knows about refusals of its kernel.
type kernelLimits struct {
	lacks      lacks // nothing while unknown
	asked      bool  // lacks is known
	askedSet   bool  // lacks.set too
	told       bool  // lacks has been logged
	quarantine refusedServices
	suspected  []topology.ServicePortName // what a search had narrowed a refusal down to when its attempts ran out
	refused    []Quarantined              // of the last sync that succeeded
	retried    int                        // where the last retry of quarantined Services began
	lastGood   []*rules.Service           // the ports of default/kubernetes, as last desired
	scratched  bool                       // scratch chains may exist
	spent      int                        // restores of this sync that tried rules
}

// sync makes the kernel equal to want, except for the Services that it refuses. These are
// quarantined, so that the rules of all others still change.
func (k *familySyncer) sync(ctx context.Context, want render.Desired, verify bool) (rules.Changes, error) {
	k.spent = 0
	defer k.endScratch(ctx, want.Options.Names)
	all := verify && k.last != nil // after a failure, refusals have just been probed
	if err := k.tryAgain(ctx, want, all); err != nil {
		return rules.Changes{}, err
	}
	write := func() (rules.Changes, error) {
		k.endScratch(ctx, want.Options.Names)
		return k.writeInChunks(ctx, k.permitted(want), verify)
	}
	c, err := write()
	if refusal(err) == nil {
		return c, k.done(want, err)
	}
	changed, abilityErr := k.knowAgain(ctx, want.Options)
	if abilityErr != nil {
		return c, errors.Join(err, abilityErr)
	}
	if changed {
		c, err = write()
		k.spent++
	}
	for e := refusal(err); e != nil && k.attempts() > 0 && k.isolate(ctx, want, e); e = refusal(err) {
		c, err = write()
		k.spent += 2 // with the removal of the scratch chains
	}
	return c, k.done(want, err)
}

// tryAgain asks the kernel whether it accepts now what it refused. With all it asks about
// everything, as part of a verification that changes may interrupt; otherwise only about Services
// that changed.
func (k *familySyncer) tryAgain(ctx context.Context, want render.Desired, all bool) error {
	reading, end := rules.Reading(ctx)
	defer end()
	if all && (!k.asked || k.lacks != (lacks{}) || len(k.quarantine) > 0) {
		if reading.Err() != nil {
			all, k.interrupted = false, true
		}
		defer k.countVerifyTime()()
	}
	if k.asked || all { // otherwise the probe may fail too, for example while the lock is held
		if err := k.know(ctx, want.Options, all); err != nil {
			return err
		}
	}
	k.retry(ctx, reading, want, all)
	return nil
}

// attempts returns how many restores this sync has left for a search.
func (k *familySyncer) attempts() int { return maxRestores - writeRestores - k.spent }

// permitted returns want without what this kernel is known to refuse.
func (k *familySyncer) permitted(want render.Desired) render.Desired {
	want.Rules = k.quarantine.apply(want.Rules)
	want.Options = optionsFor(want.Options, k.lacks)
	return want
}

// done records the end of a sync of want, and returns its error.
func (k *familySyncer) done(want render.Desired, err error) error {
	if err != nil {
		return err
	}
	k.refused = k.quarantine.report(want.Rules, optionsFor(want.Options, k.lacks))
	for _, s := range render.PortsOf(want.Rules.Services, kubernetes()) {
		if _, is := k.quarantine[s.Name]; !is {
			k.lastGood = replaced(k.lastGood, s)
		}
	}
	return nil
}

// replaced returns list with s instead of the Service of that name.
func replaced(list []*rules.Service, s *rules.Service) []*rules.Service {
	kept := []*rules.Service{s}
	for _, o := range list {
		if o.Name != s.Name {
			kept = append(kept, o)
		}
	}
	return kept
}

// knowAgain probes the kernel after a refusal, and reports whether the answer is new.
func (k *familySyncer) knowAgain(ctx context.Context, o render.Options) (changed bool, err error) {
	before := k.lacks
	k.asked = false
	err = k.know(ctx, o, false)
	return k.lacks != before, err
}

// retry releases the quarantined Services that the kernel accepts now. It tries all of them, or
// only those that changed since they were refused. With all it stops when reading ends.
func (k *familySyncer) retry(ctx, reading context.Context, want render.Desired, all bool) {
	list := k.quarantine.among(want.Rules.Services, !all)
	if len(list) == 0 {
		return
	}
	o := optionsFor(want.Options, k.lacks)
	takes := func(group []*rules.Service) bool {
		var place []*rules.Service
		for _, s := range group {
			if k.quarantine[s.Name].inPlace {
				place = append(place, s)
			}
		}
		_, err := k.tryServices(ctx, group, o, false)
		if err == nil && len(place) > 0 {
			_, err = k.tryServices(ctx, place, o, true)
		}
		return err == nil
	}
	groups := [][]*rules.Service{list}
	if !takes(list) {
		groups = nil
		for i := range min(len(list), retryAttempts) {
			if all && reading.Err() != nil {
				k.interrupted = true
				break
			}
			s := list[(k.retried+i)%len(list)]
			if len(list) > 1 && takes([]*rules.Service{s}) {
				groups = append(groups, []*rules.Service{s})
			}
		}
		k.retried += retryAttempts // so that the next verify tries others
	}
	for _, group := range groups {
		for _, s := range group {
			delete(k.quarantine, s.Name)
			k.log.Info("released a Service from quarantine, because the kernel accepts its rules", "service", s.Name.String())
		}
	}
	for _, s := range list { // retried when it changes, or at the next verify
		if r, is := k.quarantine[s.Name]; is {
			r.service = s
			k.quarantine[s.Name] = r
		}
	}
}

// isolate quarantines the Services behind a refusal, and reports whether it found any.
func (k *familySyncer) isolate(ctx context.Context, want render.Desired, e *RestoreError) bool {
	if !k.asked {
		return false // the kernel accepts no rule at all, or gives no answer
	}
	now := k.permitted(want)
	found := suspectsOf(e.input, now)
	if len(found.services) == 0 {
		return false
	}
	k.log.Warn("the kernel refuses rules; searching for the Services that they belong to", "suspects", len(found.services), "err", e)
	found = found.only(k.suspected)
	hints := found.hints(e)
	k.suspected = nil
	s := search{k: k, ctx: ctx, options: now.Options, reasons: map[int]string{}}
	v, err := bisect(len(found.services), hints, s.attempt(found.services))
	if len(v.guilty) == 0 && err == nil { // the kernel accepts these rules, but not in their own chains
		s.inPlace = true
		v, err = bisect(len(found.services), hints, s.attempt(found.services))
	}
	if err != nil {
		k.log.Warn("not every Service that the kernel refuses is found yet; the next sync continues the search", "found", len(v.guilty), "err", err)
	}
	for _, i := range v.group {
		k.suspected = append(k.suspected, found.services[i].Name)
	}
	for _, i := range v.guilty {
		reason := s.reasons[i]
		if reason == "" {
			reason = reasonOf(e)
		}
		k.confine(ctx, want, found.services[i], refusedService{reason: reason, inPlace: s.inPlace})
	}
	return len(v.guilty) > 0
}

// confine quarantines a Service. If its replacement is refused too, nothing is written for it.
func (k *familySyncer) confine(ctx context.Context, want render.Desired, s *rules.Service, r refusedService) {
	for _, original := range want.Rules.Services {
		if original.Name == s.Name {
			r.service = original
		}
	}
	before, again := k.quarantine[s.Name]
	if again && before.treatment != kept {
		r.treatment = omitted
	} else if isKubernetes(s.Name) && !again {
		if r.lastGood = k.keepLastGood(ctx, want.Options, r.service); r.lastGood != nil {
			r.treatment = kept
		}
	}
	if k.quarantine == nil {
		k.quarantine = refusedServices{}
	}
	k.quarantine[s.Name] = r
}

// keepLastGood returns a Service as last desired, or else as another process wrote it, or nil.
func (k *familySyncer) keepLastGood(ctx context.Context, o render.Options, s *rules.Service) *rules.Service {
	for _, last := range k.lastGood {
		if last.Name == s.Name {
			return last
		}
	}
	var nat netfilter.SavedTable
	for line, err := range k.kernel.save.lines(ctx, netfilter.NAT.String(), netfilter.NAT) {
		if err != nil {
			k.log.Warn("cannot read the last good rules of a Service", "service", s.Name.String(), "err", err)
			return nil
		}
		if line.Table == netfilter.NAT && o.Names.IsServiceChain(netfilter.NAT, line.Chain) {
			nat.Read(line)
		}
	}
	if last := lastGood(s, &nat, o); last != nil {
		k.lastGood = replaced(k.lastGood, last)
		return last
	}
	return nil
}

// search runs the attempts of a bisection.
type search struct {
	k       *familySyncer
	ctx     context.Context
	options render.Options
	inPlace bool           // try in the chains of the Services, not in the scratch chains
	reasons map[int]string // of the suspects refused alone
}

// attempt tries groups of list.
func (s *search) attempt(list []*rules.Service) attempt {
	return func(group []int) (bool, []int, error) {
		if s.k.attempts() <= 0 {
			return false, nil, errTooMany
		}
		members := make([]*rules.Service, len(group))
		for i, at := range group {
			members[i] = list[at]
		}
		owner, err := s.k.tryServices(s.ctx, members, s.options, s.inPlace)
		if err == nil {
			return false, nil, nil
		}
		e := refusal(err)
		if e == nil {
			return false, nil, err
		}
		if len(group) == 1 {
			s.reasons[group[0]] = reasonOf(e)
		}
		var hints []int
		for _, at := range (suspects{owner: owner}).hints(e) {
			hints = append(hints, group[at])
		}
		return true, hints, nil
	}
}

// transient are messages of a tool about failures that its input did not cause.
var transient = [...]string{
	"xtables lock", "Cannot allocate memory", "No buffer space", "Resource temporarily unavailable",
	"Operation not permitted", "Permission denied", "No space left", "Interrupted system call",
}

// refusal returns the error of a restore whose input was refused. It is nil for any other error:
// the tool is missing, was killed, timed out, or lacked memory.
func refusal(err error) *RestoreError {
	var e *RestoreError
	var exit *exec.ExitError
	if !errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		!errors.As(e.Err, &exit) || !exit.Exited() {
		return nil
	}
	for _, text := range transient {
		if strings.Contains(e.Output, text) {
			return nil
		}
	}
	return e
}
