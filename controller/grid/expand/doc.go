// Package expand decides which children a Grid has in each NodeUnit, and which steps are needed to
// get there.
//
// Where each decision is taken:
//
//	decide.go       which steps a Grid needs now (Decide)
//	unit.go         whose object has a child's name: ours, an orphan to adopt, or foreign
//	child.go        what a child looks like; its name is decided in package topology
//	template.go     the templates of a Grid, decoded; which one a unit gets, and what is wrong with a
//	                Grid as it is written, is decided by gridspec; pool.go: which are unused
//	fingerprint.go  what tells a desired child, and a set of owned fields, from another
//	applied.go      what an earlier controller has applied to a child
//	contest.go      how often a child is repaired that another client keeps changing
//	rival.go        what is said about that client
//	loss.go         when the child of a unit without Nodes is deleted, and when deletions are held
//	served.go       which units never had a ready Pod
//	places.go       how many of these are deleted now, by the removal budget, and what is released
//	rekeyed.go      when a ServiceGrid keeps the key that it had
//	replacement.go  which child is replaced because its API forbids a change
//	misplaced.go    which Pods outside their unit are evicted
//	paused.go       in which units nothing is changed
//	maxunits.go     when a Grid has so many units that no child is created
//	predecessor.go  what is taken over from SuperEdge
//	condition.go    the conditions of a Grid
//	idle.go         the condition of a Grid that another cluster expands
//	member.go       what is believed of the report of another cluster
//	distribution.go what the status of a distributed Grid says about its clusters
//	row.go          the status of a unit; rollout.go: whether its rollout is complete
//	status.go       the status of a Grid; problem.go: the reasons in it; size.go: how large it may be
//	failure.go      which units have the same problem
//
// Observed, in observed.go, is the input of all of them.
//
// Invariant: nothing that the user wrote is lost. A template is overlaid as JSON and never passed
// through typed structs, which are only for reading.
//
// The package is pure: it takes the observed state, the time included, and returns what to do and
// what to report.
package expand
