package ipvs

import (
	"fmt"
	"maps"
	"net/netip"
	"time"

	"gridproxy/rules"

	"github.com/google/go-cmp/cmp"
)

// fakeKernel does operations as the kernel does, and fails where the kernel would. It checks after
// each that nothing of others changed and that everything of ours can be told to be.
type fakeKernel struct {
	fatalf  func(string, ...any)
	holds   kernelState
	foreign State // with their destinations
	log     []operation
	exclude []netip.Prefix
	unseen  bool               // the planner cannot know yet of the servers of others
	usable  map[ServerKey]bool // what has to be served at every moment of a sync
	chains  map[ServerKey]bool // what chains serve
}

func newFakeKernel(fatalf func(string, ...any), holds kernelState) *fakeKernel {
	return &fakeKernel{fatalf: fatalf, holds: filled(holds), foreign: filled(kernelState{}).State}
}

// copied is what a reader of the kernel gets.
func (k *fakeKernel) copied() kernelState {
	return kernelState{State: cloned(k.holds.State)}
}

// addForeign gives the kernel a server of another program's.
func (k *fakeKernel) addForeign(key ServerKey, addr netip.AddrPort) {
	d := DestinationKey{Server: key, Addr: addr}
	for _, s := range []State{k.holds.State, k.foreign} {
		s.Servers[key] = Server{Scheduler: "wlc"}
		s.Destinations[d] = Destination{Weight: 7, Other: "Route"}
	}
}

// do runs operations until limit of them are done; it reports whether all are.
func (k *fakeKernel) do(p *planner, ops []operation, limit *int) bool {
	for _, op := range ops {
		if p.skip(op) {
			continue
		}
		if *limit == 0 {
			return false
		}
		*limit--
		if _, taken := k.holds.Servers[op.Destination.Server]; op.Kind == addServer && taken {
			if !k.do(p, p.conflict(op.Destination.Server), limit) {
				return false
			}
			continue
		}
		k.one(op)
		p.done(op)
		k.log = append(k.log, op)
		k.check(op)
	}
	return true
}

func (k *fakeKernel) one(op operation) {
	h, key := k.holds, op.Destination.Server
	entry, address := has(h.Entries, op.Entry), has(h.Addresses, op.Addr)
	server, destination := has(h.Servers, key), has(h.Destinations, op.Destination)
	ok := map[operationKind]bool{
		addEntry: !entry, deleteEntry: entry, addAddress: !address, deleteAddress: address,
		addServer: !server, updateServer: server, deleteServer: server,
		addDestination: server && !destination, updateDestination: destination, deleteDestination: destination,
	}[op.Kind]
	if !ok {
		k.fatalf("the kernel cannot do %+v", op)
	}
	switch op.Kind {
	case addEntry:
		h.Entries[op.Entry] = struct{}{}
	case deleteEntry:
		delete(h.Entries, op.Entry)
	case addAddress:
		h.Addresses[op.Addr] = struct{}{}
	case deleteAddress:
		delete(h.Addresses, op.Addr)
	case addServer, updateServer:
		h.Servers[key] = op.Server
	case deleteServer:
		delete(h.Servers, key)
		maps.DeleteFunc(h.Destinations, func(d DestinationKey, _ Destination) bool { return d.Server == key })
	case addDestination, updateDestination:
		h.Destinations[op.Destination] = Destination{Weight: op.Weight}
	case deleteDestination:
		delete(h.Destinations, op.Destination)
	}
}

func (k *fakeKernel) ownership() ownership {
	return ownership{kernelState: k.holds, exclude: k.exclude}
}

func (k *fakeKernel) check(op operation) {
	m := k.ownership()
	for key, s := range k.foreign.Servers {
		if k.holds.Servers[key] != s {
			k.fatalf("%+v changed another program's server %s", op, key)
		}
		if !k.unseen && m.has(key) {
			k.fatalf("%+v made another program's server %s look like ours", op, key)
		}
	}
	for d, v := range k.foreign.Destinations {
		if k.holds.Destinations[d] != v {
			k.fatalf("%+v changed another program's destination %s of %s", op, d.Addr, d.Server)
		}
	}
	for d := range k.holds.Destinations {
		if has(k.foreign.Servers, d.Server) && !has(k.foreign.Destinations, d) {
			k.fatalf("%+v added %s to another program's server", op, d.Addr)
		}
	}
	for key := range k.holds.Servers {
		if !has(k.foreign.Servers, key) && !m.has(key) {
			k.fatalf("after %+v nothing says that server %s is ours", op, key)
		}
	}
	k.checkServed(op)
}

// checkServed fails if a Service that was served before the sync, and should be after it, is not
// served after a step.
func (k *fakeKernel) checkServed(after any) {
	for key := range k.usable {
		if !k.answers(key) && !k.chains[key] {
			k.fatalf("after %+v neither a virtual server nor chains serve %s", after, key)
		}
	}
}

func (k *fakeKernel) answers(key ServerKey) bool {
	for d, v := range k.holds.Destinations {
		if d.Server == key && v.Weight > 0 {
			return true
		}
	}
	return false
}

// sync is one whole sync, or the first limit operations of it.
func (k *fakeKernel) sync(p *planner, c Compiled, now time.Time, l limits, open map[DestinationKey]int, limit int) bool {
	l.now = now
	return k.run(&fakeRun{fakeKernel: k, planner: p, compiled: c, bounds: l, open: open, limit: limit})
}

func (k *fakeKernel) run(r *fakeRun) bool {
	k.usable = map[ServerKey]bool{}
	want := r.compiled.State()
	for d := range want.Destinations {
		k.usable[d.Server] = true
	}
	for key := range r.inChains() {
		k.usable[key] = true
	}
	maps.DeleteFunc(k.usable, func(key ServerKey, _ bool) bool {
		return has(k.foreign.Servers, key) || !k.answers(key) && !k.chains[key]
	})
	if err := runPhases(r.planner, r); err != nil {
		k.fatalf("%v", err)
	}
	return !r.crashed
}

// expect is what must be there at the end: what is wanted, and what is others'.
func (k *fakeKernel) expect(want State) State {
	conflict := func(key ServerKey) bool { return has(k.foreign.Servers, key) }
	needed := map[netip.Addr]bool{}
	contested := map[netip.Addr]bool{}
	for key := range want.Servers {
		if conflict(key) {
			contested[key.Addr.Addr()] = true
		} else {
			needed[key.Addr.Addr()] = true
		}
	}
	void := func(a netip.Addr) bool { return contested[a] && !needed[a] }
	maps.DeleteFunc(want.Servers, func(key ServerKey, _ Server) bool { return conflict(key) })
	maps.DeleteFunc(want.Destinations, func(d DestinationKey, _ Destination) bool { return conflict(d.Server) })
	maps.DeleteFunc(want.Addresses, func(a netip.Addr, _ struct{}) bool { return void(a) })
	maps.DeleteFunc(want.Entries, func(e Entry, _ struct{}) bool {
		switch keptSets[e.Set] {
		case serverUse:
			return conflict(listedServer(e))
		case addressUse:
			return void(e.Net.Addr())
		}
		return false
	})
	maps.Copy(want.Servers, k.foreign.Servers)
	maps.Copy(want.Destinations, k.foreign.Destinations)
	return want
}

func (k *fakeKernel) expectEqual(want State, when string) {
	if diff := cmp.Diff(k.expect(want), k.holds.State, equateAddrs); diff != "" {
		k.fatalf("%s (-want +kernel):\n%s", when, diff)
	}
}

// fakeRun is one sync with a fakeKernel: the executor of tests.
type fakeRun struct {
	*fakeKernel
	planner  *planner
	compiled Compiled
	bounds   limits
	open     map[DestinationKey]int // connections
	limit    int                    // after how many operations the process is killed; negative = never
	crashed  bool
	failing  rules.FamilySet // families whose chains cannot be written
	chained  rules.FamilySet // families whose chains were written
	steps    []string        // of the sync: operations, and the chains
}

// inChains are the addresses and ports that chains serve alone.
func (r *fakeRun) inChains() map[ServerKey]bool {
	keys := map[ServerKey]bool{}
	for _, p := range r.compiled.plans {
		for _, slot := range p.slots {
			if slot.set == "" {
				keys[slot.key] = true
			}
		}
	}
	return keys
}

func (r *fakeRun) split() error { r.planner.setDesired(r.compiled); return nil }

// writeChains fails the test if a real server that left a virtual server that stays still gets
// connections: closure does not wait for chains.
func (r *fakeRun) writeChains() error {
	if r.crashed {
		return nil
	}
	r.steps = append(r.steps, "chains")
	want := r.compiled.State()
	for d, v := range r.holds.Destinations {
		stays := has(want.Servers, d.Server) && !has(r.foreign.Servers, d.Server)
		if stays && !has(want.Destinations, d) && v.Weight > 0 {
			r.fatalf("%s of %s gets new connections until the chains are written", d.Addr, d.Server)
		}
	}
	chains := r.inChains()
	for key := range r.chains {
		if r.failing[key.family()] {
			chains[key] = true
		}
	}
	maps.DeleteFunc(chains, func(key ServerKey, _ bool) bool { return r.failing[key.family()] && !r.chains[key] })
	r.chains = chains
	r.chained = rules.FamilySet{!r.failing[0], !r.failing[1]}
	r.checkServed("the chains")
	return nil
}

func (r *fakeRun) countConnections() error {
	r.planner.connections = map[DestinationKey]int{}
	for d := range r.planner.drains {
		r.planner.connections[d] = r.open[d]
	}
	return nil
}

func (r *fakeRun) do(ops []operation, _ bool) {
	before := len(r.log)
	r.crashed = !r.fakeKernel.do(r.planner, ops, &r.limit) || r.crashed
	for _, op := range r.log[before:] {
		verb := "add"
		if op.Kind >= deleteDestination {
			verb = "delete"
		}
		r.steps = append(r.steps, fmt.Sprintf("%s %s weight %d", verb, op.Destination.Server, op.Weight))
	}
}

func (r *fakeRun) limits() limits { return r.bounds }

func (*fakeRun) adopt() error                     { return nil }
func (*fakeRun) ask() error                       { return nil }
func (*fakeRun) read() error                      { return nil } // tests do it themselves
func (*fakeRun) create() error                    { return nil }
func (*fakeRun) changeSources() error             { return nil }
func (*fakeRun) discard() error                   { return nil }
func (*fakeRun) refusing() rules.FamilySet        { return rules.FamilySet{} }
func (r *fakeRun) chainsWritten() rules.FamilySet { return r.chained }
func (r *fakeRun) synced() rules.FamilySet        { return r.chained }
