package machines

import (
	"context"
	"fmt"

	"gridproxy/integration/env/wait"

	"github.com/vishvananda/netlink"
)

// CutOff takes the uplink of a site away: its machines reach one another and nothing else. A
// machine that is switched on again stays cut off. What machines of the site say to one another is
// lost for a moment when their site is cut off for the first time, and never afterwards.
func (c *Cluster) CutOff(site ...*Machine) error {
	if site[0].bridge == c.fabric.bridge {
		if err := c.fabric.join(site); err != nil {
			return fmt.Errorf("making a network for the site of %s: %w", site[0].Name, err)
		}
	}
	return c.fabric.carry(uplinkOf(site[0].bridge), false)
}

// Rejoin ends CutOff for the same machines.
func (c *Cluster) Rejoin(site ...*Machine) error {
	if site[0].bridge == c.fabric.bridge {
		return fmt.Errorf("%s is not cut off", site[0].Name)
	}
	return c.fabric.carry(uplinkOf(site[0].bridge), true)
}

// uplinkOf is the name of the cable between a site's bridge and that of the fabric.
func uplinkOf(lan netlink.Link) string { return "up-" + lan.Attrs().Name }

// join moves the cables of a site to a bridge of its own, with one cable to that of the fabric.
func (f *fabric) join(site []*Machine) error {
	lan := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "l-" + site[0].Name}}
	if err := f.Links().LinkAdd(lan); err != nil {
		return err
	}
	up := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: uplinkOf(lan), MasterIndex: lan.Attrs().Index}, PeerName: "p" + uplinkOf(lan)}
	if err := f.Links().LinkAdd(up); err != nil {
		return err
	}
	peer, err := f.Links().LinkByName(up.PeerName)
	if err != nil {
		return err
	}
	if err := f.Links().LinkSetMasterByIndex(peer, f.bridge.Attrs().Index); err != nil {
		return err
	}
	for _, link := range []netlink.Link{lan, up, peer} {
		if err := f.Links().LinkSetUp(link); err != nil {
			return err
		}
	}
	return f.replug(lan, site)
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
	return wait.Usual.For(ctx, func(ctx context.Context) error {
		_, err := m.Run(ctx, nil, "test", "-S", socket)
		return err
	})
}
