// Command demo shows on one machine what gridproxy does: six nodes in two units, one
// Service, one gridproxy per node, and who answers whom; then a node moves to the other
// unit. It exits 1 if one request left its unit or was not answered, and leaves nothing
// behind.
package main
