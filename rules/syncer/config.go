package syncer

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"
)

// Source is where Snapshots come from; topology/watch has two. The caller runs it.
type Source interface {
	Snapshot() (topology.Snapshot, bool)
	Changed() <-chan struct{}
}

// Flows deletes the flows that contradict rules that the kernel enforces by now, of the families in
// synced; conntrack.Cleaner does this. It is called after each run but that of a saved Snapshot,
// even if no family is in force, so that it knows which families missed something.
type Flows interface {
	// Remember notes what was enforced before the first Clean, which judges flows of that time too.
	Remember([]*rules.Service)
	Clean(ctx context.Context, want rules.Ruleset, view topology.View, synced rules.FamilySet, force bool) (deleted, outlived int, err error)
}

// NamedBackend is a Backend with the name that messages and metrics give it.
type NamedBackend struct {
	Name string
	rules.Backend
}

// Config is what a Syncer works with.
type Config struct {
	Source    Source
	Host      func() (topology.Host, error) // host.Read
	HostMoved <-chan struct{}               // host.Watch; nil = no signal, so Host is called in every run
	Backends  []NamedBackend
	Flows     Flows // nil = flows are left alone
	Topology  topology.Config
	Rules     rules.Config

	// Reserved are Rules.APIServers as far as they are known by now; nil = those in Rules.
	Reserved func() []netip.AddrPort

	// Saved is what an earlier process enforced; the zero value = nothing is known of it. The
	// first clean-up deletes flows to Services that it has and the cluster no longer has. A
	// Snapshot of the Source that is itself a saved one deletes none.
	Saved topology.Snapshot

	MinSyncPeriod time.Duration // from the end of a run that wrote to the start of the next
	VerifyPeriod  time.Duration // see verification; 0 = only at start and after failures
	Observers     []Observer    // notified in this order, by the syncing goroutine
	Log           *slog.Logger  // nil = none
}

// Observer is notified of every run. It must not block, because nothing is synced meanwhile.
type Observer interface {
	Synced(Result)
}

// Result is one run. Result.Changes.Families is the outcome of each address family over all
// Backends. What must follow a family that succeeded reads this, and not Err. If the machine's
// addresses could not be read, nothing was decided: View, Ruleset and Backends are empty, and Err
// and both families say so. Queued is zero if the run only verified, or continued what an earlier
// one began.
type Result struct {
	Start, End time.Time
	Queued     time.Time // of the oldest change that this run handles
	Verify     bool      // the Backends were asked to read the kernel back
	Snapshot   topology.Snapshot
	View       topology.View
	Ruleset    rules.Ruleset
	Backends   []BackendResult // in the order of Config.Backends
	Changes    rules.Changes   // the sum over Backends; Verified if all of them are, Again the soonest
	Flows      FlowsResult
	Err        error // nil = every Backend holds Ruleset
	Waits      bool  // Err is only what failed before, and was not tried again

	// Unchanged says that no Backend was called, because each already held Ruleset. What a Backend has
	// found is that of an earlier run.
	Unchanged bool

	// VerifyPeriod is the time until the next verification, if no change comes: at least
	// Config.VerifyPeriod.
	VerifyPeriod time.Duration

	plan plan
}

// BackendResult is what one Backend did in a run.
type BackendResult struct {
	Name    string
	Took    time.Duration
	Changes rules.Changes
	Err     error
}

// FlowsResult is what Flows did in a run. A family that failed is not swept, because the kernel may
// still enforce its previous rules.
type FlowsResult struct {
	Took              time.Duration
	Deleted, Outlived int
	Err               error // not part of Result.Err: the rules are in force
}
