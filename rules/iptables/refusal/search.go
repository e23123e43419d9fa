package refusal

import (
	"context"
	"errors"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// How many restores a sync spends on Services that the kernel refuses.
const (
	MaxRestores   = 20
	writeRestores = 4 // of them: two refused ones, removing the scratch chains, writing the rest
	retryAttempts = 4 // for each of the refused Services alone, when all together are refused

	// searchAttempts remain after a probe of the kernel. They halve 8,000 Services down to one.
	searchAttempts = MaxRestores - writeRestores - 1
)

// syncOthers searches for what the kernel refuses, and writes everything else. c and err are the
// result of the Sync that failed; if it was not refused, they are the result.
func (r *Refusals) syncOthers(ctx context.Context, want render.Desired, verify bool, c rules.Changes, err error) (rules.Changes, error) {
	if refusalOf(err) == nil {
		return c, err
	}
	defer r.endScratch(ctx, want.Options.Names)
	write := func() (rules.Changes, error) {
		r.endScratch(ctx, want.Options.Names)
		return r.inner.Sync(ctx, r.withoutRefused(want), verify)
	}
	before := r.lacks
	r.asked = false
	if abilityErr := r.learnLacks(ctx, want.Options, false); abilityErr != nil {
		return c, errors.Join(err, abilityErr)
	}
	if r.lacks != before {
		c, err = write()
		r.spent++
	}
	for e := refusalOf(err); e != nil && r.attempts() > 0 && r.isolate(ctx, want, e); e = refusalOf(err) {
		c, err = write()
		r.spent += 2 // with the removal of the scratch chains
	}
	return c, err
}

// tryAgain asks the kernel whether it accepts now what it refused. With all it asks about
// everything, as part of a verification that changes may interrupt; otherwise only about Services
// that changed. It returns the processor time, and whether it was interrupted.
func (r *Refusals) tryAgain(ctx context.Context, want render.Desired, all bool) (c rules.Changes, err error) {
	defer r.endScratch(ctx, want.Options.Names)
	reading, end := rules.Reading(ctx)
	defer end()
	if all {
		if reading.Err() != nil {
			all, c.Interrupted = false, true
		}
		before := host.ProcessorTime()
		defer func() { c.VerifyTime = host.ProcessorTime() - before }()
	}
	if r.asked || all { // otherwise the probe may fail too, for example while the lock is held
		if err := r.learnLacks(ctx, want.Options, all); err != nil {
			return c, err
		}
	}
	if r.retry(ctx, reading, want, all) {
		c.Interrupted = true
	}
	return c, nil
}

// attempts returns how many restores this sync has left for a search.
func (r *Refusals) attempts() int { return MaxRestores - writeRestores - r.spent }

// withoutRefused returns want without what the kernel is known to refuse.
func (r *Refusals) withoutRefused(want render.Desired) render.Desired {
	want.Rules = r.quarantine.apply(want.Rules)
	want.Options = optionsFor(want.Options, r.lacks)
	return want
}

// retry releases the quarantined Services that the kernel accepts now. It tries all of them, or
// only those that changed since they were refused. With all it stops when reading ends, and reports
// that it was interrupted.
func (r *Refusals) retry(ctx, reading context.Context, want render.Desired, all bool) (interrupted bool) {
	list := r.quarantine.among(want.Rules.Services, !all)
	if len(list) == 0 {
		return false
	}
	o := optionsFor(want.Options, r.lacks)
	takes := func(group []*rules.Service) bool {
		place := slices.DeleteFunc(slices.Clone(group), func(s *rules.Service) bool { return !r.quarantine[s.Name].inPlace })
		_, err := r.tryServices(ctx, group, o, false)
		if err == nil && len(place) > 0 {
			_, err = r.tryServices(ctx, place, o, true)
		}
		return err == nil
	}
	groups := [][]*rules.Service{list}
	if !takes(list) {
		groups = nil
		for i := range min(len(list), retryAttempts) {
			if all && reading.Err() != nil {
				interrupted = true
				break
			}
			s := list[(r.retried+i)%len(list)]
			if len(list) > 1 && takes([]*rules.Service{s}) {
				groups = append(groups, []*rules.Service{s})
			}
		}
		r.retried += retryAttempts // so that the next verify tries others
	}
	for _, group := range groups {
		for _, s := range group {
			delete(r.quarantine, s.Name)
			r.log.Info("released a Service from quarantine, because the kernel accepts its rules", "service", s.Name.String())
		}
	}
	for _, s := range list { // retried when it changes, or at the next verify
		if q, is := r.quarantine[s.Name]; is {
			q.service = s
			r.quarantine[s.Name] = q
		}
	}
	return interrupted
}

// isolate quarantines the Services behind a refusal, and reports whether it found any.
func (r *Refusals) isolate(ctx context.Context, want render.Desired, e *Error) bool {
	if !r.asked {
		return false // the kernel accepts no rule at all, or gives no answer
	}
	now := r.withoutRefused(want)
	found := suspectsOf(e.input, now)
	if len(found.services) == 0 {
		return false
	}
	r.log.Warn("the kernel refuses rules; searching for the Services that they belong to", "suspects", len(found.services), "err", e)
	found = found.only(r.suspected)
	hints := found.hints(e)
	r.suspected = nil
	s := search{r: r, ctx: ctx, options: now.Options, reasons: map[int]string{}}
	v, err := bisect(len(found.services), hints, s.attempt(found.services))
	if len(v.guilty) == 0 && err == nil { // the kernel accepts these rules, but not in their own chains
		s.inPlace = true
		v, err = bisect(len(found.services), hints, s.attempt(found.services))
	}
	if err != nil {
		r.log.Warn("not every Service that the kernel refuses is found yet; the next sync continues the search", "found", len(v.guilty), "err", err)
	}
	for _, i := range v.group {
		r.suspected = append(r.suspected, found.services[i].Name)
	}
	for _, i := range v.guilty {
		reason := s.reasons[i]
		if reason == "" {
			reason = reasonOf(e)
		}
		r.confine(ctx, want, found.services[i], refusedService{reason: reason, inPlace: s.inPlace})
	}
	return len(v.guilty) > 0
}

// confine quarantines a Service. If its replacement is refused too, nothing is written for it.
func (r *Refusals) confine(ctx context.Context, want render.Desired, s *rules.Service, q refusedService) {
	for _, original := range want.Rules.Services {
		if original.Name == s.Name {
			q.service = original
		}
	}
	before, again := r.quarantine[s.Name]
	if again && before.treatment != kept {
		q.treatment = omitted
	} else if s.Name.NamespacedName == kubernetes() && !again {
		if q.lastGood = r.keepLastGood(ctx, want.Options, q.service); q.lastGood != nil {
			q.treatment = kept
		}
	}
	r.quarantine[s.Name] = q
}

// keepLastGood returns a Service as last desired, or else as another process wrote it, or nil.
func (r *Refusals) keepLastGood(ctx context.Context, o render.Options, s *rules.Service) *rules.Service {
	if last, is := r.lastGood[s.Name]; is {
		return last
	}
	var nat netfilter.SavedTable
	for line, err := range r.inner.NAT(ctx) {
		if err != nil {
			r.log.Warn("cannot read the last good rules of a Service", "service", s.Name.String(), "err", err)
			return nil
		}
		if line.Table == netfilter.NAT && o.Names.IsServiceChain(netfilter.NAT, line.Chain) {
			nat.Read(line)
		}
	}
	last := lastGood(s, &nat, o)
	if last != nil {
		r.lastGood[s.Name] = last
	}
	return last
}

// search runs the attempts of a bisection.
type search struct {
	r       *Refusals
	ctx     context.Context
	options render.Options
	inPlace bool           // try in the chains of the Services, not in the scratch chains
	reasons map[int]string // of the suspects refused alone
}

func (s *search) attempt(list []*rules.Service) attempt {
	return func(group []int) (bool, []int, error) {
		if s.r.attempts() <= 0 {
			return false, nil, errTooMany
		}
		members := make([]*rules.Service, len(group))
		for i, at := range group {
			members[i] = list[at]
		}
		owner, err := s.r.tryServices(s.ctx, members, s.options, s.inPlace)
		if err == nil {
			return false, nil, nil
		}
		e := refusalOf(err)
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
