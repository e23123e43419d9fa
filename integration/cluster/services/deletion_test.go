package services

import "testing"

// What deletes rules must leave others' rules alone, and delete a chain only when nothing leads to it.
func TestDeletion(t *testing.T) {
	const save = `# a save
*nat
:PREROUTING ACCEPT [1:2]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-A - [0:0]
:MINE - [0:0]
-A PREROUTING -m comment --comment "service portals" -j KUBE-SERVICES
-A PREROUTING -j MINE
-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-A
COMMIT
*mangle
:KUBE-IPTABLES-HINT - [0:0]
COMMIT
`
	const want = `*nat
-D PREROUTING -m comment --comment "service portals" -j KUBE-SERVICES
-F KUBE-SERVICES
-F KUBE-SVC-A
-X KUBE-SERVICES
-X KUBE-SVC-A
COMMIT
*mangle
-F KUBE-IPTABLES-HINT
-X KUBE-IPTABLES-HINT
COMMIT
`
	if got := deletion(save); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}
