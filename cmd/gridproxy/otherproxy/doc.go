// Package otherproxy decides whether another service proxy, such as kube-proxy or a second
// gridproxy, writes into the same network namespace.
//
// Invariant: the only evidence is that another process writes rules again after a verify has
// repaired them, in three spells. Rules from before the first sync are no evidence, such as the
// chains and the canary of a kube-proxy that has ended. Neither are rules that were only removed,
// for example by a flush. During a rolling update two daemons may run for less than three spells. A
// shadow writes nothing, and a trial (--service-proxy-name) uses other chain names, so neither is
// ever suspected.
//
// Next decides, NewLimits says how long a spell is, and Evidence.Message is the text for operators.
//
// Pure: the caller passes the time.
package otherproxy
