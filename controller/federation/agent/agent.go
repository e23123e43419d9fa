package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/controller/retry"
	"gridproxy/topology/excerpt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manager is the field manager of what an agent writes.
const Manager = "grid-controller-federation"

// Access is how an agent reaches one API server.
type Access struct {
	Cache  cache.Cache   // of what is watched; it is started and ended by the caller
	Client client.Client // reads from the Cache
	Live   client.Reader // reads from the API server
}

// Config is what an agent works with.
type Config struct {
	Cluster string // the name of the FleetCluster
	Hub     string // the UID of the hub's Namespace kube-system
	// HubAccess is to the API server with the FleetCluster and its namespace; Target to the one
	// with the Grids; Engine to the one where Flux runs.
	HubAccess, Target, Engine Access
	// Namespace is where the copies and Flux's objects are, in the engine.
	Namespace string
	// KubeConfig is how Flux reaches the Target; nil: it is the engine itself.
	KubeConfig *v1alpha1.KubeConfig
	// ArtifactURL is where Flux reaches Server, without a path.
	ArtifactURL string
	Version     string
	// Accept are the namespaces of the Target into which Grids of the hub may be put; none: all.
	Accept []string
	// bound is what the Target may send; nil: anything.
	bound *bound
	// HubRestored is called when the hub has lost what the agent wrote, until it returns true. It
	// may be nil.
	HubRestored func() bool
	Now         func() time.Time
	Log         *slog.Logger
}

// Agent is the agent of one cluster. Run runs it.
type Agent struct {
	Config
	sources
	changed chan struct{}

	unpacked map[string]delivery.Bundle // by digest, of the last round
	needed   map[string]delivery.Bundle // of this round
	kinds    kinds
	waits    map[string]waiting // for Flux, by set
	said     map[string]saying  // the reports that the hub has, by name
	// said has what the hub has, as it was listed then, for the FleetCluster with this UID.
	recalled   bool
	recalledAt time.Time
	toldTo     types.UID
	nodes      int32
	beat       heartbeat
	lastError  string
	usable     bool // the engine was read in this round
	drift      drift
	live       map[delivery.Key]client.Object // the Grids of the cluster, of this round
}

// New returns an agent that has not begun.
func New(c Config) *Agent {
	a := &Agent{
		Config: c, changed: make(chan struct{}, 1), unpacked: map[string]delivery.Bundle{}, needed: map[string]delivery.Bundle{},
		kinds: kinds{}, waits: map[string]waiting{}, said: map[string]saying{},
		drift: drift{seen: map[delivery.Key]comparison{}, asked: map[string]request{}},
	}
	a.sources = newSources(c, wake(a.changed))
	return a
}

// Run works until ctx ends: once a minute, and when something has changed.
func (a *Agent) Run(ctx context.Context) {
	defer a.sources.end()
	failures := 0
	for ctx.Err() == nil {
		again, err := a.round(ctx)
		if err != nil && ctx.Err() == nil {
			again = retry.Pause(retryDelay, retryDelayMax, failures)
			failures++
		} else {
			err, failures = nil, 0
		}
		a.tell(err)
		if !a.wait(ctx, again) {
			return
		}
	}
}

// tell logs an error when it changes; nil after an error: that the agent works again.
func (a *Agent) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == a.lastError {
		return
	}
	if a.lastError = text; text == "" {
		a.Log.Info("the agent of the cluster works again", "cluster", a.Cluster)
		return
	}
	hint := ""
	if apierrors.IsUnauthorized(err) && a.KubeConfig == nil {
		hint = "if the token for the hub has expired or was replaced: run grid-controller join --cluster " + a.Cluster +
			" on the hub, and apply here what it prints; until then everything stays as it is"
	}
	a.Log.Warn("a round of the agent failed; it tries again", "cluster", a.Cluster, "err", err, "hint", hint)
}

// wait waits for a change, at most for a time, and reports false if ctx has ended. Changes close
// together are one.
func (a *Agent) wait(ctx context.Context, longest time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(longest):
		return true
	case <-a.changed:
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(settleDelay):
		return true
	}
}

// round observes, decides and executes once. again is after how long to do so without a change.
func (a *Agent) round(ctx context.Context) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	observed, unread := a.observe(ctx)
	d := delivery.Decide(observed)
	var failed error
	if a.usable {
		failed = a.apply(ctx, d)
	}
	if a.usable {
		failed = errors.Join(failed, a.prompt(ctx))
	}
	if known := a.KubeConfig == nil || observed.Fleet != nil; known && a.usable && failed == nil && observed.Grids != nil {
		failed = a.repair(ctx, d, a.live)
	}
	if failed != nil && !errors.Is(failed, errWait) {
		d.Problems = append(d.Problems, v1alpha1.Problem{Reason: delivery.ReasonNotDone, Message: excerpt.Fit(failed.Error(), v1alpha1.MaxMessage)})
	}
	next, unsaid := a.report(ctx, observed, d, unread)
	if len(observed.Missing.Kinds) > 0 {
		next = min(next, missingKindPeriod)
	}
	if observed.EngineMissing != "" {
		next = min(next, enginePeriod)
	}
	next = min(next, a.idleIn())
	return next, errors.Join(unread, failed, unsaid)
}
