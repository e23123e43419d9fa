package machines

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// PowerOff ends everything on the machine at once and unplugs it. What is on its disk stays.
func (m *Machine) PowerOff() error {
	if m.init == nil {
		return fmt.Errorf("switching %s off: %w", m.Name, errOff)
	}
	return m.off()
}

var errOn = errors.New("the machine is on")

// PowerOn boots the machine from its disk and returns when its Node is Ready again, by the new kubelet's word.
func (m *Machine) PowerOn(ctx context.Context) error {
	if m.init != nil {
		return fmt.Errorf("switching %s on: %w", m.Name, errOn)
	}
	begin := time.Now()
	if err := m.boot(); err != nil {
		return fmt.Errorf("switching %s on: %w", m.Name, err)
	}
	if err := m.ready(ctx, begin); err != nil {
		return err
	}
	return m.cluster.teach(ctx, m.Namespace)
}

// CutLink pulls the machine's network cable.
func (m *Machine) CutLink() error { return m.cluster.fabric.carry(m.Name, false) }

// MendLink plugs it in again.
func (m *Machine) MendLink() error { return m.cluster.fabric.carry(m.Name, true) }
