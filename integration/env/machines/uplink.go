package machines

import (
	"context"
	"errors"
	"fmt"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"

	"github.com/vishvananda/netlink"
)

// CutOff connects machines with one another and with nothing else, as a site that has lost its
// uplink. A machine that is switched on again stays cut off.
func (c *Cluster) CutOff(site ...*Machine) error {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "lan-" + site[0].Name}}
	if err := c.fabric.Links().LinkAdd(bridge); err != nil {
		return fmt.Errorf("making a bridge for a site: %w", err)
	}
	if err := c.fabric.Links().LinkSetUp(bridge); err != nil {
		return fmt.Errorf("making a bridge for a site: %w", err)
	}
	return c.fabric.replug(bridge, site)
}

// Rejoin ends CutOff for the same machines.
func (c *Cluster) Rejoin(site ...*Machine) error {
	alone := site[0].bridge
	if alone == c.fabric.bridge {
		return fmt.Errorf("%s is not cut off", site[0].Name)
	}
	return errors.Join(c.fabric.replug(c.fabric.bridge, site), c.fabric.Links().LinkDel(alone))
}

// replug moves the cables of machines to a bridge.
func (f *fabric) replug(bridge netlink.Link, all []*Machine) error {
	for _, m := range all {
		link, err := f.Links().LinkByName(m.Name)
		if err == nil {
			err = f.Links().LinkSetMasterByIndex(link, bridge.Attrs().Index)
		}
		if err != nil {
			return fmt.Errorf("moving the cable of %s: %w", m.Name, err)
		}
		m.bridge = bridge
	}
	return nil
}

// PowerOnCutOff is PowerOn without waiting for the Node, which cannot be Ready. It returns when
// containerd runs. The ways to Pods are known, as a CNI plugin keeps them on disk.
func (m *Machine) PowerOnCutOff(ctx context.Context) error {
	if m.init != nil {
		return fmt.Errorf("switching %s on: %w", m.Name, errOn)
	}
	if err := m.boot(); err != nil {
		return fmt.Errorf("switching %s on: %w", m.Name, err)
	}
	if err := m.cluster.teach(ctx, m.Namespace); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apiserver.StartTimeout)
	defer cancel()
	return netns.Poll(ctx, func(ctx context.Context) error {
		_, err := m.Run(ctx, nil, "test", "-S", socket)
		return err
	})
}
