// Package gridcrd installs deploy/crds on a real API server and checks what it then accepts, refuses, keeps and shows.
//
// Invariant: the CRDs and the samples are applied as users apply them, by kubectl from the folders of deploy. Not pure:
// processes and sockets. Nothing but tests.
package gridcrd
