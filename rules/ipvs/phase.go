package ipvs

import (
	"slices"

	"gridproxy/rules"
)

// phase is one step of a sync: a call, or a plan, or a call and then a plan.
type phase struct {
	name string
	// families are those that the phase works on; nil = all. Without any the phase is left out.
	families func(executor) rules.FamilySet
	// call does what is more than operations: it reads, or has another program write.
	call func(executor) error
	// plan decides which operations the kernel gets.
	plan func(*planner, limits) []operation
	// movable says that a virtual server which the kernel refuses is no failure: the phase
	// "move to chains" lets chains serve its address and port.
	movable bool
}

// phases returns the phases of a sync in their order. Backend and Shadow both loop over them:
// see runPhases. At no moment does a Service have neither virtual servers nor chains.
func phases() []phase {
	return []phase{
		// Takes families into use whose chains can be written by now. Everything that follows is
		// about the families in use.
		{name: "adopt", call: executor.adopt},
		// Asks the kernel which schedulers it has, and sets sysctls. The split depends on it.
		{name: "ask", call: executor.ask},
		// Reads servers, sets and addresses: with verify, or after a failure. The plans that follow
		// compare with the result.
		{name: "read", call: executor.read},
		// Creates the sets and the link. Entries and addresses need them.
		{name: "create", call: executor.create},
		// Splits the Ruleset between virtual servers and chains.
		{name: "split", call: executor.split},
		// Adds what is missing. It comes before every phase that takes something away.
		{name: "grow", plan: (*planner).grow, movable: true},
		// Splits again without the virtual servers that the kernel refused. It comes before the
		// chains, which serve their addresses and ports instead.
		{name: "move to chains", families: executor.refusing, call: executor.split, plan: (*planner).grow},
		// Changes the source of this machine's own connections to addresses that move to chains.
		// It comes before the chains, which translate such connections from then on.
		{name: "source", call: executor.changeSources},
		// Stops new connections to surplus real servers of virtual servers that stay. It comes
		// before the chains, because closure does not wait for them.
		{name: "quiesce", plan: (*planner).quiesce},
		// Has the other backend write the chains. They take the place of what goes from here on.
		{name: "chains", call: executor.writeChains},
		// Stops new connections to virtual servers that go: the chains in their place exist now.
		{name: "quiesce servers", families: executor.chainsWritten, plan: (*planner).quiesceServers},
		// Counts the connections of real servers that drain. It comes after the last phase that
		// stops new ones, and decides what the next phase may delete.
		{name: "connections", families: executor.chainsWritten, call: executor.countConnections},
		// Deletes what has drained, and surplus addresses and set entries.
		{name: "shrink", families: executor.chainsWritten, plan: (*planner).shrink},
		// Destroys sets that only kube-proxy has. Rules named them until the chains were written.
		{name: "discard", families: executor.synced, call: executor.discard},
	}
}

// executor does what phases need beside the planner. Backend's writes to the kernel. Shadow's
// writes to the planner's picture of the kernel only.
type executor interface {
	adopt() error
	ask() error
	read() error  // into the planner
	split() error // into the planner
	create() error
	changeSources() error
	writeChains() error
	countConnections() error // into the planner
	discard() error

	// do carries out operations in order. movable: see phase.
	do(ops []operation, movable bool)
	limits() limits

	refusing() rules.FamilySet      // all, if the kernel refused virtual servers in this sync; else none
	chainsWritten() rules.FamilySet // those whose chains were written in this sync
	synced() rules.FamilySet        // all, if nothing has failed in this sync; else none
}

// runPhases runs all phases in order until a call fails, and returns the error of that call.
// Operations and chains that fail end nothing and are not in the error: the executor keeps
// them. If the chains of a family could not be written, the phases after it delete nothing of
// that family.
func runPhases(p *planner, e executor) error {
	for _, ph := range phases() {
		families := rules.FamilySet{true, true}
		if ph.families != nil {
			families = ph.families(e)
		}
		if families == (rules.FamilySet{}) {
			continue
		}
		if ph.call != nil {
			if err := ph.call(e); err != nil {
				return err
			}
		}
		if ph.plan != nil {
			l := e.limits()
			l.families = families
			e.do(slices.DeleteFunc(ph.plan(p, l), func(op operation) bool {
				held := !families[op.family()]
				if held {
					p.touch(op)
				}
				return held
			}), ph.movable)
		}
	}
	return nil
}
