// Package expand decides which children a Grid has in each NodeUnit, and which steps are needed to
// get there.
//
// Where to look:
//
//   - what goes in: observed.go, grid.go (any of the three Grids); which steps a Grid needs now:
//     decide.go (Decide); what a step can be: plan.go; what the observed state means for each
//     unit, for Decide and Status: assessment.go
//   - whose object has a child's name: ours, an orphan to adopt, or foreign: unit.go
//   - what a child looks like: child.go (its name: package topology); templates, decoded, and those
//     that no unit uses: template.go (what is wrong with one: package gridspec)
//   - whether a child differs from the desired one, and what an earlier controller has applied to
//     it: applied.go; what is taken over from SuperEdge: predecessor.go
//   - another client keeps changing a child: contest.go (how often it is repaired), rival.go (the
//     message about that client)
//   - a unit without Nodes: loss.go (when its child is deleted, when deletions are held),
//     places.go (how many by the removal budget, and what is released)
//   - a child whose API forbids a change is replaced: replacement.go; a ServiceGrid keeps its key:
//     rekeyed.go
//   - Pods outside their unit are evicted: misplaced.go
//   - units in which nothing is changed: paused.go; so many units that no child is created:
//     maxunits.go
//   - the status of a Grid: status.go (also how large it may be), condition.go (its conditions),
//     problem.go (reasons, and units with the same problem); of a unit: row.go, rollout.go
//     (whether its rollout is complete, and whether it ever had a ready Pod)
//   - clusters of a distributed Grid: distribution.go (their part of the status), member.go (what
//     is believed of a report)
//   - what is cheaper to remember than to make: memo.go; labels in little memory: pairs.go; times
//     and bounds: limits.go
//
// Invariant: nothing that the user wrote is lost. A template is overlaid as JSON and never passed
// through typed structs, which are only for reading.
//
// The package is pure: it takes the observed state, the time included, and returns what to do and
// what to report.
package expand
