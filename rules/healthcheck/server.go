package healthcheck

import (
	"fmt"
	"net/netip"

	"gridproxy/rules"

	"k8s.io/apimachinery/pkg/types"
)

// Server holds the open health-check node ports. One goroutine calls Sync and Close.
type Server struct {
	healthy func() bool
}

// New makes a Server without open ports. healthy is asked at each request whether the
// proxy keeps up with its changes; it must be safe for concurrent use.
func New(healthy func() bool) *Server { return &Server{healthy: healthy} }

// BindError is a port that could not be opened.
type BindError struct {
	Service types.NamespacedName
	Addr    netip.AddrPort
	Err     error
}

func (e BindError) Error() string {
	return fmt.Sprintf("opening health-check node port %s of Service %s: %v", e.Addr, e.Service, e.Err)
}

func (e BindError) Unwrap() error { return e.Err }

// Sync makes the open ports those of want.HealthChecks, on the addresses that NodePorts
// answer on (want.NodePorts; all of a family: its unspecified address), and their answers
// want's. It returns what could not be opened; the next Sync tries again.
func (s *Server) Sync(want rules.Ruleset) []BindError { return nil }

// Close closes every port.
func (s *Server) Close() {}
