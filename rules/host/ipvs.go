package host

import (
	"fmt"
	"strings"

	"gridproxy/topology/regularfile"
)

const (
	ipvsDir       = "proc/sys/net/ipv4/vs/"
	ipForwardFile = "proc/sys/net/ipv4/ip_forward"
	arpDir        = "proc/sys/net/ipv4/conf/all/"
)

// withoutIPVS is the flag with which none of these settings is needed.
const withoutIPVS = "--proxy-mode=iptables"

// IPVSSettings is what ApplyIPVS achieved.
type IPVSSettings struct {
	// Quiet: a real server of weight 0 gets no new connection, neither from a client with affinity
	// to it (expire_quiescent_template) nor from one that reuses a source port, after the end of its
	// connection (conn_reuse_mode) or before it, as when the client crashed (expire_nodest_conn).
	// Otherwise such a server must be deleted to keep new connections away, which cuts its
	// connections.
	Quiet    bool
	Warnings []error // what else could not be set, and the consequence
}

// ApplyIPVS sets what virtual servers need in this network namespace. The error names a setting
// without which they do not work. strictARP is for load balancers that answer ARP themselves: then
// the machine does not answer ARP for addresses of ServiceLink.
func (m Machine) ApplyIPVS(strictARP bool) (IPVSSettings, error) {
	for _, s := range []struct{ name, why string }{
		{ipvsDir + "conntrack", "masquerading would not see the connections of virtual servers"},
		{ipForwardFile, "no packet would be forwarded to a real server"},
	} {
		if err := m.hold(s.name, 1, withoutIPVS); err != nil {
			return IPVSSettings{}, fmt.Errorf("%w (without it %s)", err, s.why)
		}
	}
	settings := IPVSSettings{Quiet: true}
	for _, s := range []struct {
		name, why string
		keep      bool // any value but 0 will do
	}{
		{"expire_quiescent_template", "a client with affinity keeps reaching a real server that drains", false},
		{"conn_reuse_mode", "a client that reuses a source port may reach a real server that drains", true},
		{"expire_nodest_conn", "a connection to a real server that was deleted hangs instead of being refused, " +
			"and a client that crashed may reach one that drains", false},
	} {
		if have, err := m.readInt(ipvsDir + s.name); s.keep && err == nil && have != 0 {
			continue
		}
		if err := m.hold(ipvsDir+s.name, 1, withoutIPVS); err != nil {
			settings.Quiet = false
			settings.Warnings = append(settings.Warnings, fmt.Errorf("%w (without it %s)", err, s.why))
		}
	}
	if err := m.reuseDelay(); err != nil {
		settings.Warnings = append(settings.Warnings, err)
	}
	if !strictARP {
		return settings, nil
	}
	for name, value := range map[string]int64{"arp_ignore": 1, "arp_announce": 2} {
		if err := m.hold(arpDir+name, value, "--ipvs-strict-arp=false"); err != nil {
			settings.Warnings = append(settings.Warnings, fmt.Errorf("%w (without it the machine answers ARP for addresses of Services)", err))
		}
	}
	return settings, nil
}

// reuseDelay returns a warning on kernels before 5.9, else nil. With conntrack they drop the
// first packet of a client that reuses a source port, to choose another real server, and the
// client sends it again after a second. kube-proxy sets conn_reuse_mode to 0 on such kernels,
// which would send such a client to a real server of weight 0.
func (m Machine) reuseDelay() error {
	mode, _ := m.readInt(ipvsDir + "conn_reuse_mode") // 0 if it cannot be read
	text, _ := regularfile.Read(m.path("proc/sys/kernel/osrelease"), settingMax)
	release := strings.TrimSpace(string(text))
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	if mode == 0 || n < 2 || major > 5 || major == 5 && minor >= 9 {
		return nil
	}
	return fmt.Errorf("kernel %s delays by one second each connection of a client that reuses a source port soon (%s is %d); "+
		"for clients with many short connections boot Linux 5.9 or later, or a kernel of your distribution that has the fix, or start with %s",
		release, settingName(ipvsDir+"conn_reuse_mode"), mode, withoutIPVS)
}

// hold does what set does, then checks that the kernel has the value.
func (m Machine) hold(name string, value int64, without string) error {
	if err := m.set(name, value, without); err != nil {
		return err
	}
	if have, err := m.readInt(name); err != nil || have != value {
		return fmt.Errorf("%s was set to %d, but the kernel reports %d; start with %s", settingName(name), value, have, without)
	}
	return nil
}
