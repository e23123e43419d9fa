// Package otherproxy decides whether another service proxy, such as kube-proxy or a second
// gridproxy, writes into the same network namespace.
//
// The only evidence is that rules that a verify repaired are written again, in three spells.
// What was there before the first sync, such as the chains and the canary of a kube-proxy that
// has ended, is no evidence. Neither is what was only removed, such as by a flush. While a
// rolling update replaces a daemon both may run: this takes less time than three spells. A `run
// --shadow` writes nothing, and a trial (--service-proxy-name) writes chains with other names,
// so neither is ever found.
//
// Pure: the caller tells the time.
package otherproxy
