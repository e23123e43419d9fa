package refusal

import (
	"context"
	"iter"
	"log/slog"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Kernel is one address family of a kernel. If the kernel refuses an input, the error of Sync or
// Try is an *Error.
type Kernel interface {
	// Sync makes the kernel equal to want; see rules.Backend.
	Sync(ctx context.Context, want render.Desired, verify bool) (rules.Changes, error)
	// Try writes an input of iptables-restore that takes some commits.
	Try(ctx context.Context, input []byte, commits uint32) error
	// NAT yields what iptables-save prints of table nat.
	NAT(ctx context.Context) iter.Seq2[netfilter.Line, error]
}

// Refusals writes one address family without what its kernel refuses. One goroutine uses it.
type Refusals struct {
	inner Kernel
	log   *slog.Logger

	lacks    lacks // nothing while unknown
	asked    bool  // lacks is known
	askedSet bool  // lacks.set too
	told     bool  // lacks has been logged

	quarantine refusedServices
	suspected  []topology.ServicePortName                  // what a search had narrowed a refusal down to when its attempts ran out
	refused    []Quarantined                               // of the last Sync that succeeded
	retried    int                                         // where the last retry of quarantined Services began
	lastGood   map[topology.ServicePortName]*rules.Service // the ports of default/kubernetes, as last desired

	synced    bool // the last Sync succeeded
	scratched bool // scratch chains may exist
	spent     int  // restores of this Sync that tried rules
}

// New returns the Refusals of a kernel. Call Probe before the first Sync.
func New(inner Kernel, log *slog.Logger) *Refusals {
	return &Refusals{inner: inner, log: log, quarantine: refusedServices{}, lastGood: map[topology.ServicePortName]*rules.Service{}}
}

// Sync makes the kernel equal to want, except for the Services that it refuses. These are
// quarantined, so that the rules of all others still change.
func (r *Refusals) Sync(ctx context.Context, want render.Desired, verify bool) (c rules.Changes, err error) {
	all := verify && r.synced // after a failure, refusals have just been probed
	r.synced, r.spent = false, 0
	accepted := want
	var retried rules.Changes
	if !r.acceptsAll(want.Options) {
		if retried, err = r.tryAgain(ctx, want, all); err != nil {
			return retried, err
		}
		accepted = r.withoutRefused(want)
	}
	c, err = r.inner.Sync(ctx, accepted, verify)
	if err != nil {
		c, err = r.syncOthers(ctx, want, verify, c, err)
	}
	c.VerifyTime += retried.VerifyTime
	c.Interrupted = c.Interrupted || retried.Interrupted
	if err == nil {
		r.remember(want)
	}
	return c, err
}

// acceptsAll reports whether the kernel is known to refuse nothing.
func (r *Refusals) acceptsAll(o render.Options) bool {
	return r.asked && r.lacks == (lacks{}) && len(r.quarantine) == 0 && (r.askedSet || !o.LocalDNS.IsValid())
}

// remember records a Sync of want that succeeded.
func (r *Refusals) remember(want render.Desired) {
	r.synced, r.refused = true, nil
	if !r.acceptsAll(want.Options) {
		r.refused = r.quarantine.report(want.Rules, optionsFor(want.Options, r.lacks))
	}
	for _, s := range render.PortsOf(want.Rules.Services, kubernetes()) {
		if _, is := r.quarantine[s.Name]; !is {
			r.lastGood[s.Name] = s
		}
	}
}

// kubernetes returns the name of the API server's Service, without which a node learns nothing.
func kubernetes() types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: "kubernetes"}
}

// Quarantined lists the Services that the kernel refused in the last Sync that succeeded.
func (r *Refusals) Quarantined() []Quarantined { return r.refused }

// WithoutLocalDNS reports whether the kernel lacks xt_set: the rules of local DNS are left out.
func (r *Refusals) WithoutLocalDNS() bool { return r.lacks.set }

// WithoutAffinity reports whether the kernel cannot keep a client at its endpoint.
func (r *Refusals) WithoutAffinity() bool { return r.lacks.recent }
