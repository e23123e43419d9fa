package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/state"
	"gridproxy/topology/watch"
)

// loadState sets d.saved to the state in --state-dir, if there is one, and d.saver to the Saver
// that saves to it. It sets neither if the daemon saves no state.
func (d *daemon) loadState(o options.Options) {
	store := stateOf(o)
	if store == nil {
		return
	}
	saved, _ := loadFrom(store, d.log)
	d.saved = saved.Snapshot
	d.saver = watch.NewSaver(watch.SaverConfig{Store: store, Report: d.reportSaving}, d.saved)
}

// stateOf returns where the daemon saves its state, or nil if it saves none. Manifests are on
// disk already, and a shadow leaves what another proxy saves alone.
func stateOf(o options.Options) *watch.Store {
	if len(o.Manifests) > 0 || o.Shadow || o.StateDir == "" {
		return nil
	}
	dir := o.StateDir
	if o.ServiceProxyName != "" { // it serves other Services: one must never start from the other's state
		dir = filepath.Join(dir, "proxy-"+o.ServiceProxyName)
	}
	return watch.NewStore(dir, o.NodeName)
}

// loadFrom reads the saved state. It logs what cannot be used, and returns false if nothing
// can.
func loadFrom(store *watch.Store, log *slog.Logger) (saved state.State, ok bool) {
	saved, problems, ok := store.Load()
	for _, p := range problems {
		log.Error(p)
	}
	return saved, ok
}

// reportSaving logs whether the state can be saved, and sends an Event if not.
func (d *daemon) reportSaving(err error) {
	if err == nil {
		d.log.Info("the state for a start without API server is saved again")
		return
	}
	const text = "the state for a start without API server is not saved, the one before stays on disk; make space there, or change --state-dir"
	d.log.Error(text, "err", err)
	d.events.onNode("StateNotSaved", excerpt.Message(fmt.Sprintf("%s: %v", text, err)))
}

// saveObserver passes on what the kernel enforces, of one family at least.
type saveObserver struct{ *watch.Saver }

// Synced passes on the Snapshot of a run that wrote, with the topology keys read from it.
func (o saveObserver) Synced(r syncer.Result) {
	if r.Backends == nil || r.Changes.Families.Synced() == (rules.FamilySet{}) {
		return
	}
	s := r.Snapshot
	s.LastKeys, s.Host = r.View.LastKeys, topology.Host{}
	o.Enforced(s)
}
