// Package netns builds a small edge cluster out of network namespaces: nodes on one bridge,
// Pods behind veth pairs with echo servers in them, and a client outside of the cluster.
// It runs functions and programs in any of the namespaces and keeps the manifests that
// describe the cluster to gridproxy.
//
// What must hold: nothing is made in the namespace that the program was started in, the
// namespaces have no names, and every program that is started dies with the lab. So a lab
// leaves nothing behind, not even when the program that made it is killed. A lab needs
// root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and nothing else: links, addresses, routes and
// neighbours are set over netlink.
//
// Demonstrations are built from it: RunDemo is the main of one, which ends with everything taken
// away again, after Ctrl-C too; it reports that everything is gone only if it is. Matrix counts and
// shows who was answered by whom: the nodes that ask are its rows, the endpoints its columns, both
// in the order of their units, so that where closure holds it is block-diagonal. An answer of an
// endpoint that is not a column has left its unit.
//
// Only Matrix is pure: everything else here is the machine.
package netns
