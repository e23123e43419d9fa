// Package grid makes the cluster equal to what package expand says: it observes, executes steps, remembers what came of
// them, and writes one status for each Grid. It is the controller's imperative shell and decides nothing about
// children: every question about them is answered by expand.Decide and expand.Status.
//
// Invariant: an object is written only by a step that expand asked for, with the preconditions of that step. What is
// remembered can be forgotten at any time: a controller that starts anew comes to the same children.
//
// Not pure: API server, clock (handed in), log and metrics. Only here and in cmd is controller-runtime used.
package grid
