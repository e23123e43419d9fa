// Package nodeproxy asks the daemons of many Nodes for /healthz, through the node proxy of the API
// server.
//
// Invariant: at most MaxParallel requests run at once, each ends at its deadline, and at most
// bodyMax bytes of an answer are read. A redirect is not followed: the answer comes from a Node,
// and would lead the user's credentials elsewhere.
//
// Not pure: network.
package nodeproxy
