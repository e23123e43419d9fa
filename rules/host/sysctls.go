package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gridproxy/topology/regularfile"

	"golang.org/x/sys/unix"
)

const (
	sysctlDir         = "proc/sys/"
	conntrackDir      = "proc/sys/net/netfilter/"
	conntrackMaxFile  = conntrackDir + "nf_conntrack_max"
	hashsizeFile      = "sys/module/nf_conntrack/parameters/hashsize"
	routeLocalnetFile = "proc/sys/net/ipv4/conf/all/route_localnet"
)

// Sysctls are the settings of kube-proxy's --conntrack-* flags. The zero value of a field
// leaves that setting alone.
type Sysctls struct {
	MaxPerCore            int           // entries of the conntrack table for each online CPU
	Min                   int           // at least so many entries, if MaxPerCore is set
	TCPTimeoutEstablished time.Duration // whole seconds
	TCPTimeoutCloseWait   time.Duration
	TCPBeLiberal          bool
	UDPTimeout            time.Duration
	UDPTimeoutStream      time.Duration
}

// ConntrackMax returns how many entries the conntrack table should have on a machine with so
// many CPUs: perCore for each CPU, at most 1048576, at least least. If perCore is not positive,
// it returns 0: leave the table alone. kube-proxy does the same, but ignores least where
// perCore reaches 1048576.
func ConntrackMax(perCore, least, cpus int) int {
	if perCore <= 0 {
		return 0
	}
	return max(min(perCore*cpus, conntrackMax), least)
}

// Apply sets what s asks for and the machine does not have yet. Each returned error is a warning
// that names the setting, its value and what to do. The other settings are applied nevertheless.
func (m Machine) Apply(ctx context.Context, s Sysctls) []error {
	var warnings []error
	warn := func(err error) {
		if err != nil {
			warnings = append(warnings, err)
		}
	}
	if m.Root == "" { // it has most of these settings
		LoadModule(ctx, "nf_conntrack", m.path(conntrackMaxFile))
	}
	warn(m.raiseConntrackMax(ConntrackMax(s.MaxPerCore, s.Min, m.onlineCPUs())))
	for _, t := range []struct {
		name, flag string
		value      time.Duration
	}{
		{"nf_conntrack_tcp_timeout_established", "conntrack-tcp-timeout-established", s.TCPTimeoutEstablished},
		{"nf_conntrack_tcp_timeout_close_wait", "conntrack-tcp-timeout-close-wait", s.TCPTimeoutCloseWait},
		{"nf_conntrack_udp_timeout", "conntrack-udp-timeout", s.UDPTimeout},
		{"nf_conntrack_udp_timeout_stream", "conntrack-udp-timeout-stream", s.UDPTimeoutStream},
	} {
		if t.value > 0 {
			warn(m.set(conntrackDir+t.name, int64(t.value/time.Second), "--"+t.flag+"=0s"))
		}
	}
	if s.TCPBeLiberal {
		warn(m.set(conntrackDir+"nf_conntrack_tcp_be_liberal", 1, "--conntrack-tcp-be-liberal=false"))
	}
	return warnings
}

// RouteLocalnet lets the machine route packets from 127.0.0.0/8, which NodePorts on
// loopback need. It must not be called before KUBE-FIREWALL's rule is in the kernel:
// without this guard neighbours reach what listens on loopback only (CVE-2020-8558).
func (m Machine) RouteLocalnet() error {
	return m.hold(routeLocalnetFile, 1, "--iptables-localhost-nodeports=false")
}

// LocalnetRouted reports whether RouteLocalnet, or another program, has done so.
func (m Machine) LocalnetRouted() bool {
	have, err := m.readInt(routeLocalnetFile)
	return err == nil && have == 1
}

// raiseConntrackMax makes room for want entries, and for a hash table that suits them. An
// administrator's larger value stays.
func (m Machine) raiseConntrackMax(want int) error {
	if want == 0 {
		return nil
	}
	const without = "--conntrack-max-per-core=0"
	if have, err := m.readInt(conntrackMaxFile); err != nil || have < int64(want) {
		if err := m.set(conntrackMaxFile, int64(want), without); err != nil {
			return err
		}
	}
	if have, err := m.readInt(hashsizeFile); err == nil && have >= int64(want/4) {
		return nil
	}
	return m.set(hashsizeFile, int64(want/4), without)
}

// set writes value unless it is already set, and records the old value. without is the flag with
// which the setting is not needed.
func (m Machine) set(name string, value int64, without string) error {
	have, err := m.readInt(name)
	if err == nil && have == value {
		return nil
	}
	is := strconv.FormatInt(have, 10)
	if err != nil {
		is = "unreadable"
	} else if err = m.change(name, have, value); err == nil {
		return nil
	}
	return fmt.Errorf("%s is %s and cannot be set to %d: %w; %s, or start with %s",
		settingName(name), is, value, err, advice(name, value, err), without)
}

// change records the old value before it writes the new one. If the machine crashes in between,
// Restore finds a value that is not the new one and leaves it. A setting is changed even if it
// cannot be recorded; then the log has its old value.
func (m Machine) change(name string, old, value int64) error {
	if err := m.writable(name); err != nil {
		return err
	}
	notKept := m.record(name, old, value)
	if err := m.write(name, value); err != nil {
		return err
	}
	if have, err := m.readInt(name); err == nil && have != value && notKept == nil {
		notKept = m.record(name, value, have) // the kernel rounds some
	}
	if m.Log == nil {
		return nil
	}
	if notKept != nil {
		m.Log.Warn("changed a setting of this machine without keeping its old value, "+
			"so gridproxy cleanup --sysctls cannot restore it; mount "+RecordDir+" of the host",
			"setting", settingName(name), "old", old, "new", value, "err", notKept)
		return nil
	}
	m.Log.Info("changed a setting of this machine; gridproxy cleanup --sysctls restores it", "setting", settingName(name), "old", old, "new", value)
	return nil
}

// writable returns the error that write would get when it opens the setting.
func (m Machine) writable(name string) error {
	f, err := os.OpenFile(m.path(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// write replaces the content without creating the file: an absent setting is one that this
// kernel does not have.
func (m Machine) write(name string, value int64) error {
	f, err := os.OpenFile(m.path(name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(value, 10))
	return errors.Join(err, f.Close())
}

// advice returns what an administrator can do about err for the setting name.
func advice(name string, value int64, err error) string {
	sysctl, isSysctl := strings.CutPrefix(name, sysctlDir)
	switch {
	case errors.Is(err, unix.EROFS):
		command := fmt.Sprintf("echo %d > /%s", value, name)
		if isSysctl {
			command = fmt.Sprintf("sysctl -w %s=%d", strings.ReplaceAll(sysctl, "/", "."), value)
		}
		return "let a privileged container set it first (gridproxy run --init-only), or run `" + command + "` on the host"
	case !errors.Is(err, os.ErrNotExist):
		return "set it on the host"
	case strings.HasPrefix(name, ipvsDir):
		return "load the kernel module ip_vs on the host, of a kernel that has this setting (conntrack: CONFIG_IP_VS_NFCT)"
	default:
		return "load the kernel module nf_conntrack on the host"
	}
}

// settingName returns a setting as sysctl(8) prints it. A module's parameter keeps its path.
func settingName(name string) string {
	if s, ok := strings.CutPrefix(name, sysctlDir); ok {
		return "sysctl " + strings.ReplaceAll(s, "/", ".")
	}
	return "/" + name
}

const onlineCPUsFile = "sys/devices/system/cpu/online"

// onlineCPUs returns how many CPUs of the machine are online, as kube-proxy counts them. The
// conntrack table is the whole machine's, so the CPUs that this process may use are only the
// fallback: a static CPU policy gives a container few of many.
func (m Machine) onlineCPUs() int {
	if text, err := regularfile.Read(m.path(onlineCPUsFile), settingMax); err == nil {
		if n, err := countCPUs(strings.TrimSpace(string(text))); err == nil {
			return n
		}
	}
	return runtime.NumCPU()
}

// countCPUs counts the CPUs in a list of the kernel such as 0-3,8,10-11. A list that is empty or
// not in ascending order is an error.
func countCPUs(list string) (int, error) {
	count, next := 0, 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 31)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 31)
		}
		if err != nil || int(first) < next || last < first {
			return 0, fmt.Errorf("%q in %q is not a CPU or a range of CPUs in ascending order", part, list)
		}
		count += int(last - first + 1)
		next = int(last) + 1
	}
	return count, nil
}
