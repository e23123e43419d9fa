package machines

import (
	"context"
	"net/netip"

	"gridproxy/integration/lab"
)

// Machine is a machine of a Cluster.
type Machine struct {
	Name  string
	Addrs []netip.Addr // the IPv4 address first
	// Namespace is the machine's own network; another one after each PowerOn.
	Namespace *lab.Namespace
}

// Run runs a program to its end on the machine, in all of its namespaces, and returns what it wrote to standard
// output. An error carries what it wrote to standard error.
func (m *Machine) Run(ctx context.Context, stdin []byte, name string, args ...string) ([]byte, error) {
	return nil, errNotYet
}

// PowerOff ends everything on the machine at once and unplugs it. What is on its disk stays.
func (m *Machine) PowerOff() error { return errNotYet }

// PowerOn boots the machine from its disk and returns when its Node is Ready again.
func (m *Machine) PowerOn(ctx context.Context) error { return errNotYet }

// CutLink pulls the machine's network cable.
func (m *Machine) CutLink() error { return errNotYet }

// MendLink plugs it in again.
func (m *Machine) MendLink() error { return errNotYet }

// Import puts an image on the machine.
func (m *Machine) Import(ctx context.Context, image Image) error { return errNotYet }
